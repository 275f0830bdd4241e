#include "redis/bill.hpp"

#include "redis/command.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <variant>

namespace weir::redis {

namespace {

using limit::Ticks;

constexpr std::size_t kDigestLetters = 22;
constexpr std::size_t kChargeNumbers = 6;
constexpr std::size_t kRefundNumbers = 4;
// Beyond any instant or length that the script can answer: 2^53 µs, the year 2255.
constexpr std::int64_t kMostMicros = std::int64_t{1} << 53;

static_assert(std::endian::native == std::endian::little,
              "numbers go to the scripts as little-endian doubles");

void append_double(std::string& out, double value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

// A length in ticks of 1/count µs as whole microseconds and the ticks left over.
void append_length(std::string& out, Ticks ticks, std::uint64_t count) {
  append_double(out, static_cast<double>(static_cast<std::uint64_t>(ticks / count)));
  append_double(out, static_cast<double>(static_cast<std::uint64_t>(ticks % count)));
}

const limit::Spacing& spacing_of(const limit::Limiter& limiter) noexcept {
  return *limit::spacing(limiter);  // the configuration admits no others here
}

Ticks interval_of(const limit::Spacing& spacing) noexcept {
  return static_cast<std::uint64_t>(spacing.rate().period.count());
}

// How far ahead the TAT may lie for `need` more to fit, where it can ever fit.
Ticks room_for(const limit::Spacing& spacing, Ticks need) noexcept {
  const Ticks left = Ticks{spacing.capacity()} * interval_of(spacing) - need;
  if (spacing.max_wait() == base::kForever) return left;
  return std::min(left, Ticks(static_cast<std::uint64_t>(spacing.max_wait().count())) * spacing.rate().count);
}

void append_numbers(std::string& out, const limit::Charge& charge) {
  const limit::Spacing& spacing = spacing_of(*charge.limiter);
  const std::uint64_t count = spacing.rate().count;
  append_double(out, static_cast<double>(count));
  if (charge.cost > spacing.capacity()) {
    for (const double number : {-1.0, 0.0, 0.0, 0.0}) append_double(out, number);
  } else {
    const Ticks need = Ticks{charge.cost} * interval_of(spacing);
    append_length(out, room_for(spacing, need), count);
    append_length(out, need, count);
  }
  append_double(out, charge.enforced ? 1 : 0);
}

void append_numbers(std::string& out, const Refund& refund) {
  const limit::Spacing& spacing = spacing_of(*refund.charge.limiter);
  const std::uint64_t count = spacing.rate().count;
  // More than the capacity was never charged.
  const Ticks need = Ticks{std::min(refund.charge.cost, spacing.capacity())} * interval_of(spacing);
  append_double(out, static_cast<double>(count));
  append_length(out, need, count);
  const bool queue = std::holds_alternative<limit::LeakyBucket>(*refund.charge.limiter);
  append_double(out, queue ? static_cast<double>(refund.departure.time_since_epoch().count()) : -1);
}

std::array<char, kDigestLetters> letters_of(const limit::Key& key) noexcept {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::array<unsigned char, 18> bytes{};  // 16, and zeroes up to whole groups of three
  std::memcpy(bytes.data(), &key.lo, 8);
  std::memcpy(bytes.data() + 8, &key.hi, 8);
  std::array<char, 24> letters;
  for (std::size_t i = 0; i < 6; ++i) {
    const unsigned group = bytes[3 * i] << 16 | bytes[3 * i + 1] << 8 | bytes[3 * i + 2];
    for (std::size_t j = 0; j < 4; ++j) letters[4 * i + j] = kAlphabet[group >> (18 - 6 * j) & 63];
  }
  std::array<char, kDigestLetters> name;
  std::copy_n(letters.begin(), kDigestLetters, name.begin());
  return name;
}

void append_key(std::string& out, std::string_view prefix, const limit::Key& key) {
  const auto letters = letters_of(key);
  append_bulk_head(out, prefix.size() + 1 + letters.size());
  out.append(prefix).append(1, ':').append(letters.data(), letters.size()).append("\r\n", 2);
}

const limit::Key& key_of(const limit::Charge& charge) noexcept {
  return charge.key;
}
const limit::Key& key_of(const Refund& refund) noexcept {
  return refund.charge.key;
}

// EVALSHA sha n key… numbers
template <class Line>
void append_call(std::string& out, std::string_view sha, std::string_view prefix, std::span<const Line> lines,
                 std::size_t numbers) {
  append_head(out, 4 + lines.size());
  append_bulk(out, "EVALSHA");
  append_bulk(out, sha);
  append_bulk(out, std::to_string(lines.size()));
  for (const Line& line : lines) append_key(out, prefix, key_of(line));
  append_bulk_head(out, lines.size() * numbers * sizeof(double));
  for (const Line& line : lines) append_numbers(out, line);
  out.append("\r\n", 2);
}

}  // namespace

std::string_view charge_script() noexcept {
  static constexpr char kSource[] =
#include "redis/charge.lua.inc"
      ;
  return {kSource, sizeof kSource - 1};
}

std::string_view refund_script() noexcept {
  static constexpr char kSource[] =
#include "redis/refund.lua.inc"
      ;
  return {kSource, sizeof kSource - 1};
}

std::string key_name(std::string_view prefix, const limit::Key& key) {
  const auto letters = letters_of(key);
  return std::string(prefix).append(1, ':').append(letters.data(), letters.size());
}

void append_charge(std::string& out, std::string_view sha, std::string_view prefix,
                   std::span<const limit::Charge> charges) {
  append_call(out, sha, prefix, charges, kChargeNumbers);
}

void append_refund(std::string& out, std::string_view sha, std::string_view prefix,
                   std::span<const Refund> refunds) {
  append_call(out, sha, prefix, refunds, kRefundNumbers);
}

bool read_outcomes(const Reply& reply, std::span<const limit::Charge> charges,
                   std::span<limit::Outcome> outcomes, base::TimePoint& server_now) {
  const auto& numbers = reply.numbers;
  if (reply.kind != Reply::Kind::Numbers || numbers.size() != 2 + 2 * charges.size()) return false;
  if (numbers[1] <= 0 || numbers[1] > kMostMicros) return false;
  const base::TimePoint now{base::Duration(numbers[1])};
  bool fits = true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const limit::Charge& charge = charges[i];
    const auto count = spacing_of(*charge.limiter).rate().count;
    const std::int64_t wait = numbers[2 + 2 * i];
    const std::int64_t part = numbers[3 + 2 * i];
    if (wait < 0 || wait > kMostMicros || part < 0 || static_cast<std::uint64_t>(part) >= count) return false;
    const Ticks tat =
        Ticks(static_cast<std::uint64_t>(numbers[1] + wait)) * count + static_cast<std::uint64_t>(part);
    // The cell of all three algorithms is the TAT in ticks, low word first.
    const limit::Cell cell{{static_cast<std::uint64_t>(tat), static_cast<std::uint64_t>(tat >> 64)}};
    outcomes[i] = limit::step(*charge.limiter, cell, now, charge.cost).outcome;
    if (charge.enforced && !outcomes[i].allowed) fits = false;
  }
  server_now = now;
  return fits == (numbers[0] == 1);
}

}  // namespace weir::redis
