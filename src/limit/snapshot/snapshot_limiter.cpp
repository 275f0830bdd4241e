#include "limit/snapshot/snapshot_limiter.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <type_traits>

namespace weir::limit {

namespace {

constexpr std::uint64_t kMostUnits = std::uint64_t{1}
                                     << 32;  // maximum units of a rate; no rule may have more
constexpr std::size_t kLongestZone = 128;

struct LimiterWriter {
  WordWriter& out;

  void put(const Rate& rate) const {
    out.put(rate.count);
    out.put(static_cast<std::uint64_t>(rate.period.count()));
  }
  void put(const GcraCore& gcra_core) const {
    put(gcra_core.rate());
    out.put(gcra_core.capacity());
    out.put(static_cast<std::uint64_t>(gcra_core.max_wait().count()));
  }
  void operator()(const TokenBucket& l) const { put(l.gcra_core()); }
  void operator()(const Gcra& l) const { put(l.gcra_core()); }
  void operator()(const LeakyBucket& l) const { put(l.gcra_core()); }
  void operator()(const SteppedBucket& l) const {
    put(l.rate());
    out.put(l.quota());
  }
  void operator()(const FixedWindow& l) const {
    put(l.rate());
    out.put(static_cast<std::uint64_t>(l.align()));
    if (l.calendar() != nullptr) out.put(l.calendar()->zone());
  }
  void operator()(const SlidingWindow& l) const { put(l.rate()); }
  void operator()(const SlidingLog& l) const {
    put(l.rate());
    out.put(l.buckets());
  }
  void operator()(const Concurrency& l) const { out.put(l.quota()); }
  void operator()(const AdaptiveConcurrency& l) const {
    out.put(l.min());
    out.put(l.quota());
  }
};

struct GcraCoreWords {
  Rate rate;
  std::uint64_t capacity;
  base::Duration max_wait;
};

// Reads the words of a limiter that LimiterWriter wrote.
class LimiterReader {
 public:
  explicit LimiterReader(WordReader& in) : in_(in) {}

  std::optional<Limiter> take(std::size_t algorithm) {
    constexpr std::array<std::optional<Limiter> (LimiterReader::*)(), std::variant_size_v<Limiter>> kAll{
        &LimiterReader::of<TokenBucket>,        &LimiterReader::of<Gcra>,
        &LimiterReader::of<LeakyBucket>,        &LimiterReader::of<SteppedBucket>,
        &LimiterReader::of<FixedWindow>,        &LimiterReader::of<SlidingWindow>,
        &LimiterReader::of<SlidingLog>,         &LimiterReader::of<Concurrency>,
        &LimiterReader::of<AdaptiveConcurrency>};
    return algorithm < kAll.size() ? (this->*kAll[algorithm])() : std::nullopt;
  }

 private:
  template <class L>
  std::optional<Limiter> of() {
    const auto made = make(std::type_identity<L>());
    if (!good_ || !made) return std::nullopt;
    return Limiter(*made);
  }

  std::uint64_t count(std::uint64_t most) {
    const auto word = in_.take();
    good_ = good_ && word != 0 && word <= most;
    return good_ ? word : 1;
  }
  Rate rate() {
    const auto units = count(kMostUnits);
    return {units, base::Duration(static_cast<base::Duration::rep>(count(kLatest)))};
  }
  GcraCoreWords gcra_core() {
    const auto per = rate();
    const auto capacity = count(kLatest);
    const auto wait = in_.take();
    const auto most = static_cast<std::uint64_t>(base::kForever.count());
    good_ = good_ && (wait <= kLatest || wait == most);
    return {per, capacity, good_ ? base::Duration(static_cast<base::Duration::rep>(wait)) : base::kForever};
  }
  auto make(std::type_identity<TokenBucket>) {
    const auto is = gcra_core();
    return TokenBucket::make(is.rate, is.capacity);
  }
  auto make(std::type_identity<Gcra>) {
    const auto is = gcra_core();
    return Gcra::make(is.rate, is.capacity - 1);
  }
  auto make(std::type_identity<LeakyBucket>) {
    const auto is = gcra_core();
    return LeakyBucket::make(is.rate, is.capacity - 1, is.max_wait);
  }
  auto make(std::type_identity<SteppedBucket>) {
    const auto per = rate();
    return SteppedBucket::make(per, count(kLatest));
  }
  base::Result<FixedWindow> make(std::type_identity<FixedWindow>) {
    const auto per = rate();
    const auto align = in_.take();
    if (align == static_cast<std::uint64_t>(FixedWindow::Align::Epoch)) return FixedWindow::make(per);
    if (align > static_cast<std::uint64_t>(FixedWindow::Align::Week)) return base::Error{"no such calendar"};
    static constexpr std::array<Calendar::Run, 1> kRuns{{{-1, std::chrono::seconds(0)}}};
    auto zone = in_.take_text(count(kLongestZone));
    return FixedWindow::make(per.count, static_cast<FixedWindow::Align>(align),
                             std::make_shared<const Calendar>(std::move(zone), kRuns));
  }
  auto make(std::type_identity<SlidingWindow>) { return SlidingWindow::make(rate()); }
  auto make(std::type_identity<SlidingLog>) {
    const auto per = rate();
    const auto buckets = in_.take();
    return buckets == 0 ? SlidingLog::make(per) : SlidingLog::make(per, buckets);
  }
  auto make(std::type_identity<Concurrency>) { return Concurrency::make(count(kMostUnits)); }
  auto make(std::type_identity<AdaptiveConcurrency>) {
    const auto min = count(kMostUnits);
    return AdaptiveConcurrency::make(min, count(kMostUnits));
  }

  WordReader& in_;
  bool good_ = true;
};

}  // namespace

void put_limiter(WordWriter& out, const Limiter& limiter) {
  out.put(limiter.index());
  std::visit(LimiterWriter{out}, limiter);
}

std::optional<Limiter> take_limiter(WordReader& in) {
  const auto algorithm = in.take();
  return LimiterReader(in).take(algorithm);
}

}  // namespace weir::limit
