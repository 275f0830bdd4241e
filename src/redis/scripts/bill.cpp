#include "redis/scripts/bill.hpp"

#include "redis/connection/command.hpp"

#include "weir/limit/pair.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace weir::redis {

namespace {

constexpr std::size_t kDigestLetters = 22;
// The verdicts that charge.lua returns. kOtherTime: it charged nothing, because weir sent calendar windows
// that do not contain Redis's time.
constexpr std::int64_t kRefused = 0, kCharged = 1, kOtherTime = 2;
// The value of `enforced` for a line of a bill that only peeks: charge.lua never charges the line.
constexpr double kPeek = 2;
// A reply of charge.lua consists of the time, a verdict for each bill, three numbers for each line, and the
// call's number.
constexpr std::size_t verdict_at(const BillPosition& position) noexcept {
  return 1 + position.bill;
}
constexpr std::size_t answers_at(const BillPosition& position) noexcept {
  return 1 + position.bills + kAnswerNumbers * position.first_line;
}
constexpr std::size_t size_of_reply(const BillPosition& position) noexcept {
  return 1 + position.bills + kAnswerNumbers * position.lines + 1;  // plus the time and the call's number
}
static_assert(std::endian::native == std::endian::little,
              "numbers go to the scripts as little-endian doubles");

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::array<char, kDigestLetters> letters_of(const limit::Key& key) noexcept {
  std::array<unsigned char, 18> bytes{};  // 16 bytes of the digest, then zeroes up to a multiple of three
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

void append_key(std::string& out, const Naming& naming, const limit::Key& key) {
  const auto letters = letters_of(key);
  const auto tag = tag_of(limit::slot_hash_of(key));
  append_bulk_head(out, naming.prefix.size() + 1 + (naming.tagged ? tag.size() + 2 : 0) + letters.size());
  out.append(naming.prefix).append(1, ':');
  if (naming.tagged) out.append(1, '{').append(tag.data(), tag.size()).append(1, '}');
  out.append(letters.data(), letters.size()).append("\r\n", 2);
}

template <class Numbers>
void append_numbers(std::string& out, const Numbers& numbers) {
  out.append(reinterpret_cast<const char*>(numbers.data()), sizeof(Numbers));
}

// Appends the numbers of one line. `peeks`: the bill is never charged.
void append_line(std::string& out, ChargeNumbers numbers, bool peeks) {
  if (peeks) numbers[1] = kPeek;
  append_numbers(out, numbers);
}

// Appends the start of an argument: its length and the call's number. The caller must append the numbers of
// all lines.
template <class Numbers>
void append_lines_head(std::string& out, std::size_t lines, CallNumber number) {
  append_bulk_head(out, sizeof(double) + lines * sizeof(Numbers));
  append_numbers(out, std::array{static_cast<double>(number)});
}

// Appends EVALSHA, the script's SHA-1 and the number of keys. After this call, the caller must append the
// keys and then as many words as `arguments` says.
void begin_call(std::string& out, std::string_view sha, std::size_t keys, std::size_t arguments) {
  append_head(out, 3 + keys + arguments);
  append_bulk(out, "EVALSHA");
  append_bulk(out, sha);
  append_bulk(out, std::to_string(keys));
}

// Returns true if two bills have a key in common. Compares all pairs of charges: there are few (kMostLines),
// and time spent in weir is cheaper than time spent in Redis.
bool share_keys(std::span<const BillRequest> bills) noexcept {
  const auto meet = [](Lines some, Lines others) {
    return std::any_of(some.begin(), some.end(), [&](const limit::Charge& line) {
      return std::any_of(others.begin(), others.end(),
                         [&](const limit::Charge& other) { return other.key == line.key; });
    });
  };
  for (std::size_t i = 1; i < bills.size(); ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (meet(bills[before].lines, bills[i].lines)) return true;
  return false;
}

}  // namespace

std::string_view charge_script() noexcept {
  static constexpr char kSource[] =
#include "redis/scripts/charge.lua.inc"
      ;
  return {kSource, sizeof kSource - 1};
}

std::string_view refund_script() noexcept {
  static constexpr char kSource[] =
#include "redis/scripts/refund.lua.inc"
      ;
  return {kSource, sizeof kSource - 1};
}

std::string key_name(std::string_view prefix, const limit::Key& key) {
  const auto letters = letters_of(key);
  return std::string(prefix).append(1, ':').append(letters.data(), letters.size());
}

std::array<char, 3> tag_of(limit::SlotHash hash) noexcept {
  return {kAlphabet[hash >> 12], kAlphabet[hash >> 6 & 63], kAlphabet[hash & 63]};
}

Slot slot_of(limit::SlotHash hash) noexcept {
  const auto tag = tag_of(hash);
  return slot_of(std::string_view(tag.data(), tag.size()));
}

std::size_t script_lines(Lines bill) noexcept {
  const auto penalties = std::count_if(bill.begin(), bill.end(),
                                       [](const limit::Charge& line) { return line.penalty != nullptr; });
  return bill.size() + static_cast<std::size_t>(penalties);
}

void append_charge(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const BillRequest> bills, base::TimePoint around, CallNumber number) {
  std::size_t lines = 0;
  for (const auto& bill : bills) lines += script_lines(bill.lines);
  const bool sharing = share_keys(bills);
  begin_call(out, sha, lines, sharing ? 3 : 2);
  for (const auto& bill : bills)
    for (const auto& line : bill.lines) {
      append_key(out, naming, line.key);
      if (line.penalty != nullptr) append_key(out, naming, limit::penalty_key(line.key));
    }
  append_lines_head<ChargeNumbers>(out, lines, number);
  for (const auto& bill : bills)
    for (std::size_t i = 0; i < bill.lines.size(); ++i) {
      const auto* decider = limit::follows(bill.lines, i) ? bill.lines[i - 1].limiter : nullptr;
      append_line(out, numbers_of(bill.lines[i], around, bill.hold, decider), bill.peeks);
      if (bill.lines[i].penalty != nullptr) append_line(out, penalty_numbers_of(bill.lines[i]), bill.peeks);
    }
  out.append("\r\n", 2);
  append_bulk_head(out, bills.size());
  for (const auto& bill : bills) out.push_back(static_cast<char>(script_lines(bill.lines)));
  out.append("\r\n", 2);
  if (sharing) append_bulk(out, "1");
}

void append_refund(std::string& out, std::string_view sha, const Naming& naming,
                   std::span<const Refund> refunds, CallNumber number) {
  begin_call(out, sha, refunds.size(), 1);
  for (const auto& refund : refunds) append_key(out, naming, refund.charge.key);
  append_lines_head<RefundNumbers>(out, refunds.size(), number);
  for (const auto& refund : refunds) append_numbers(out, numbers_of(refund));
  out.append("\r\n", 2);
}

void append_reset(std::string& out, std::string_view sha, const Naming& naming, const limit::Charge& charge,
                  CallNumber number) {
  const std::size_t keys = charge.penalty != nullptr ? 2 : 1;
  begin_call(out, sha, keys, 1);
  append_key(out, naming, charge.key);
  if (keys == 2) append_key(out, naming, limit::penalty_key(charge.key));
  append_lines_head<RefundNumbers>(out, keys, number);
  for (std::size_t i = 0; i < keys; ++i) append_numbers(out, numbers_of_reset());
  out.append("\r\n", 2);
}

bool is_answer_to(CallNumber number, const Reply& reply) noexcept {
  return reply.kind == Reply::Kind::Numbers && !reply.numbers.empty() &&
         reply.numbers.back() == static_cast<std::int64_t>(number);
}

std::uint64_t gaps_lost(const Reply& reply) noexcept {
  const auto& numbers = reply.numbers;
  return numbers.size() == 3 && numbers[1] > 0 ? static_cast<std::uint64_t>(numbers[1]) : 0;
}

ReplyReading read_outcomes(const Reply& reply, const BillPosition& position, Lines bill,
                           std::span<limit::Outcome> outcomes, base::TimePoint& server_now, bool peeks) {
  const auto& numbers = reply.numbers;
  if (reply.kind != Reply::Kind::Numbers || numbers.size() != size_of_reply(position))
    return ReplyReading::Nonsense;
  if (numbers[0] <= 0 || numbers[0] > kMostMicros) return ReplyReading::Nonsense;
  const base::TimePoint now{base::Duration(numbers[0])};
  const auto verdict = numbers[verdict_at(position)];
  if (verdict == kOtherTime) {
    server_now = now;
    return ReplyReading::OtherTime;
  }
  bool fits = !peeks;
  auto at = answers_at(position);
  const auto next_answer = [&] {
    at += kAnswerNumbers;
    return AnswerNumbers(numbers.data() + at - kAnswerNumbers, kAnswerNumbers);
  };
  for (std::size_t i = 0; i < bill.size(); ++i) {
    auto outcome = outcome_of(bill[i], now, next_answer());
    if (!outcome) return ReplyReading::Nonsense;
    if (bill[i].penalty != nullptr && !apply_penalty(now, next_answer(), *outcome))
      return ReplyReading::Nonsense;
    outcomes[i] = !peeks && limit::follows(bill, i)
                      ? limit::counted(*bill[i].limiter, *outcome, outcomes[i - 1].allowed)
                      : *outcome;
    if (bill[i].enforced && !outcome->allowed) fits = false;
  }
  if (verdict != (fits ? kCharged : kRefused)) return ReplyReading::Nonsense;
  server_now = now;
  return ReplyReading::Answer;
}

std::span<const std::int64_t> answers_of_refused(const Reply& reply, const BillPosition& position,
                                                 Lines bill) noexcept {
  if (reply.numbers[verdict_at(position)] != kRefused) return {};
  return std::span(reply.numbers).subspan(answers_at(position), script_lines(bill) * kAnswerNumbers);
}

}  // namespace weir::redis
