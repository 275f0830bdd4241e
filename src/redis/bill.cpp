#include "redis/bill.hpp"

#include "redis/command.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace weir::redis {

namespace {

constexpr std::size_t kDigestLetters = 22;
constexpr std::int64_t kRefused = 0, kCharged = 1, kOtherTime = 2;  // charge.lua's verdicts
constexpr std::size_t kHead = 2;  // of charge.lua's reply: the verdict and the time
static_assert(std::endian::native == std::endian::little,
              "numbers go to the scripts as little-endian doubles");

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
template <class Line, class ToNumbers>
void append_call(std::string& out, std::string_view sha, std::string_view prefix, std::span<const Line> lines,
                 ToNumbers to_numbers) {
  using Numbers = decltype(to_numbers(lines.front()));
  append_head(out, 4 + lines.size());
  append_bulk(out, "EVALSHA");
  append_bulk(out, sha);
  append_bulk(out, std::to_string(lines.size()));
  for (const Line& line : lines) append_key(out, prefix, key_of(line));
  append_bulk_head(out, lines.size() * sizeof(Numbers));
  for (const Line& line : lines) {
    const Numbers numbers = to_numbers(line);
    out.append(reinterpret_cast<const char*>(numbers.data()), sizeof numbers);
  }
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
                   std::span<const limit::Charge> charges, base::TimePoint around, const Hold& hold) {
  append_call(out, sha, prefix, charges,
              [&](const limit::Charge& charge) { return numbers_of(charge, around, hold); });
}

void append_refund(std::string& out, std::string_view sha, std::string_view prefix,
                   std::span<const Refund> refunds) {
  append_call(out, sha, prefix, refunds, [](const Refund& refund) { return numbers_of(refund); });
}

Reading read_outcomes(const Reply& reply, std::span<const limit::Charge> charges,
                      std::span<limit::Outcome> outcomes, base::TimePoint& server_now) {
  const auto& numbers = reply.numbers;
  if (reply.kind != Reply::Kind::Numbers || numbers.size() < kHead) return Reading::Nonsense;
  if (numbers[1] <= 0 || numbers[1] > kMostMicros) return Reading::Nonsense;
  const base::TimePoint now{base::Duration(numbers[1])};
  if (numbers[0] == kOtherTime) {
    server_now = now;
    return Reading::OtherTime;
  }
  if (numbers.size() != kHead + kAnswerNumbers * charges.size()) return Reading::Nonsense;
  bool fits = true;
  for (std::size_t i = 0; i < charges.size(); ++i) {
    const AnswerNumbers answer(numbers.data() + kHead + i * kAnswerNumbers, kAnswerNumbers);
    const auto outcome = outcome_of(charges[i], now, answer);
    if (!outcome) return Reading::Nonsense;
    outcomes[i] = *outcome;
    if (charges[i].enforced && !outcome->allowed) fits = false;
  }
  if (numbers[0] != (fits ? kCharged : kRefused)) return Reading::Nonsense;
  server_now = now;
  return Reading::Answer;
}

std::span<const std::int64_t> answers_of_refused(const Reply& reply) noexcept {
  if (reply.numbers[0] != kRefused) return {};
  return std::span(reply.numbers).subspan(kHead);
}

}  // namespace weir::redis
