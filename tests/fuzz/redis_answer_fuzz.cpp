// Fuzzes replies to charge.lua. An accepted reply must contain an outcome for each charge, and each outcome
// must be one that its limiter can produce. Also fuzzes redirections and slot maps of a cluster: an accepted
// address must be complete, and an accepted hash slot must be below 16,384.
#include "fuzz/input.hpp"
#include "redis/cluster/cluster_slots.hpp"
#include "redis/scripts/bill.hpp"

#include "weir/limit/key_table.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fuzz {
namespace {

constexpr std::int64_t kNow = 1'800'000'000'000'000;  // microseconds since 1970: January 2027
constexpr std::size_t kMostLines = 4;

// Returns a number that Redis might send: a small number, a time near kNow, or any number.
std::int64_t number_from(Input& in) {
  switch (in.byte() % 4) {
    case 0:
      return in.byte() % 8;
    case 1:
      return kNow + static_cast<std::int64_t>(in.between(0, 1'000'000'000)) - 500'000'000;
    case 2:
      return static_cast<std::int64_t>(in.between(0, 1'000'000'000'000));
    default:
      return static_cast<std::int64_t>(in.word());
  }
}

constexpr base::Duration kHour{3'600'000'000};
constexpr limit::Penalty kPenalty{
    .after = 2, .first = kHour, .grows = 2, .most = 24 * kHour, .forget = 24 * kHour};

std::vector<limit::Charge> bill_from(Input& in, const std::vector<limit::Limiter>& limiters) {
  std::vector<limit::Charge> bill;
  for (std::size_t i = 0; i < limiters.size(); ++i) {
    auto& line = bill.emplace_back(limit::Charge{.key = {i, in.byte()},
                                                 .limiter = &limiters[i],
                                                 .cost = in.between(1, limit::kMaxCost),
                                                 .rule = static_cast<limit::RuleIndex>(i)});
    const auto traits = in.byte();
    line.enforced = traits % 4 != 0;
    line.penalty = traits >= 128 ? &kPenalty : nullptr;
  }
  return bill;
}

void check_answer(const redis::Reply& reply, const std::vector<limit::Charge>& bill) {
  std::vector<limit::Outcome> outcomes(bill.size());
  base::TimePoint now{};
  const redis::BillPosition place{0, 1, 0, redis::script_lines(bill)};
  if (redis::read_outcomes(reply, place, bill, outcomes, now) != redis::ReplyReading::Answer) return;
  require(now > base::TimePoint{}, "an answer has a time");
  bool fits = true;
  for (std::size_t i = 0; i < bill.size(); ++i) fits = fits && (!bill[i].enforced || outcomes[i].allowed);
  const auto refused = redis::answers_of_refused(reply, place, bill);
  require(fits == refused.empty(), "a bill is refused where an enforced line does not fit, and only there");
  for (const auto& outcome : outcomes) {
    require(outcome.allowed || outcome.retry_after >= base::Duration::zero(),
            "no outcome has a time to wait in the past");
    require(outcome.penalty_left.count() == 0 ||
                (!outcome.allowed && outcome.retry_after >= outcome.penalty_left),
            "a penalty refuses, and retry_after is no earlier than its end");
  }
}

void answers(Input& in) {
  std::vector<limit::Limiter> limiters;
  const std::size_t lines = in.byte() % kMostLines + 1U;
  for (std::size_t i = 0; i < lines; ++i)
    if (auto limiter = limiter_from(in)) limiters.push_back(*limiter);
  if (limiters.empty()) return;
  const auto bill = bill_from(in, limiters);
  while (in.left() != 0) {
    redis::Reply reply;
    reply.kind = in.byte() % 16 == 0 ? redis::Reply::Kind::Other : redis::Reply::Kind::Numbers;
    const std::size_t usual = 2 + 3 * redis::script_lines(bill) + 1;
    const std::size_t count = in.byte() % 8 == 0 ? in.byte() % 32U : usual;
    reply.numbers = {kNow, in.byte() % 3};
    while (reply.numbers.size() < count) reply.numbers.push_back(number_from(in));
    check_answer(reply, bill);
    (void)redis::is_answer_to(in.byte(), reply);
    (void)redis::gaps_lost(reply);
  }
}

void redirections(std::string_view text) {
  const base::Endpoint from{"10.0.0.1", 6379, ""};
  if (const auto to = redis::redirection_in(text, from)) {
    require(to->slot < redis::kSlots, "a redirection is about a slot");
    require(!to->to.host.empty() && to->to.port != 0, "a redirection leads to an address");
  }
  if (const auto map = redis::SlotMap::read(text, from)) {
    std::size_t owned = 0;
    for (std::size_t slot = 0; slot < redis::kSlots; ++slot)
      if (const auto* owner = map->owner(static_cast<redis::Slot>(slot))) {
        ++owned;
        require(!owner->host.empty() && owner->port != 0, "an owner has an address");
      }
    require(owned == map->served(), "what is served has an owner");
  }
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::Input in(bytes, size);
  weir::fuzz::answers(in);
  weir::fuzz::redirections({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
