#include "weir/observe/replay_record.hpp"

#include "observe/json_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace weir::observe {

namespace {

using base::TextWriter;

// Upper bounds, in octets, for the length of a replay record's line. kFixed: the line without its lists.
// kEntry: one entry of a list.
constexpr std::size_t kFixed = 544;
constexpr std::size_t kEntry = 384;  // including up to 128 octets for a rule's name

// Appends the low `N` hexadecimal digits of a word.
template <std::size_t N>
void write_hex(TextWriter& out, std::string_view name, std::uint64_t word) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<char, N> text;
  for (std::size_t i = 0; i < N; ++i) text[i] = kDigits[word >> (4 * (N - 1 - i)) & 15];
  out << name << '"' << std::string_view(text.data(), text.size()) << '"';
}

void write_unless_zero(TextWriter& out, std::string_view name, std::uint64_t value) {
  if (value != 0) write_count(out, name, value);
}

void write_true(TextWriter& out, std::string_view name, bool value) {
  if (value) out << name << std::string_view("true");
}

void write_clock(TextWriter& out, base::Duration ahead) {
  if (ahead.count() == 0) return;
  out << R"(,"clock_us":)" << std::string_view(ahead.count() < 0 ? "-" : "");
  out << static_cast<std::uint64_t>(std::chrono::abs(ahead).count());
}

std::uint64_t since(base::TimePoint start, base::TimePoint at) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>((at - start).count(), 0));
}

// Returns `timestamp` minus the first timestamp of the instant `at`; 0 if `timestamp` is earlier.
std::uint64_t beyond(limit::HybridTimestamp timestamp, base::TimePoint at) noexcept {
  return timestamp > limit::timestamp_at(at) ? timestamp - limit::timestamp_at(at) : 0;
}

// Writes a number with so many digits that a reader gets exactly the same number. Writes very small numbers
// as 0, because they need more digits than a line has room for.
void write_number(TextWriter& out, std::string_view name, double value) {
  constexpr double kLeast = 1e-9;
  std::array<char, 32> text;
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value < kLeast ? 0 : value,
                                 std::chars_format::fixed)
                       .ptr;
  out << name << std::string_view(text.data(), static_cast<std::size_t>(end - text.data()));
}

void write_rule(TextWriter& out, const AppliedRule& applied) {
  out << R"({"rule":")" << std::string_view(applied.rule->name) << '"';
  write_hex<8>(out, R"(,"asks":)", applied.rule->asks);
  write_digest(out, R"(,"key":)", applied.key);
  write_count(out, R"(,"cost":)", applied.cost);
  write_text(out, R"(,"says":)", applied.outcome);
  write_unless_zero(out, R"(,"variant":)", applied.variant);
  write_true(out, R"(,"elastic":)", applied.elastic);
  if (applied.factor != limit::kWholeFactor)
    write_count(out, R"(,"factor":)", limit::percent_of(applied.factor));
  out << '}';
}

std::string_view name_of(limit::RuleIndex rule_number, std::span<const policy::Rule> rules) noexcept {
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [=](const policy::Rule& rule) { return rule.rule_number == rule_number; });
  return found != rules.end() ? std::string_view(found->name) : std::string_view{};
}

void write_amendment(TextWriter& out, const ReplayRecord& record, const Amendment& done) {
  out << R"({"rule":")" << name_of(done.rule, record.all_rules) << '"';
  write_text(out, R"(,"does":)", kAmendmentNames[static_cast<std::size_t>(done.kind)]);
  write_count(out, R"(,"at_us":)", since(record.start, done.at));
  write_unless_zero(out, R"(,"turn":)", beyond(done.timestamp, done.at));
  write_true(out, R"(,"elastic":)", done.elastic);
  if (done.kind == Amendment::Kind::Settle) write_count(out, R"(,"cost":)", done.cost);
  if (done.kind == Amendment::Kind::Refund)
    write_count(out, R"(,"departure_us":)", since(record.start, done.departure));
  if (done.ending.latency)
    write_count(out, R"(,"latency_us":)", since({}, base::TimePoint(*done.ending.latency)));
  write_true(out, R"(,"failed":)", done.ending.failed);
  const bool of_table = done.kind != Amendment::Kind::Release && done.timestamp != 0;
  write_true(out, R"(,"lost":)", of_table && done.at >= record.lost_from);
  out << '}';
}

void write_identity(TextWriter& out, const ReplayRecord& record) {
  if (record.api_key) write_digest(out, R"(,"api_key":)", *record.api_key);
  write_text(out, R"(,"user":)", record.user);
  write_text(out, R"(,"org":)", record.org);
  write_text(out, R"(,"service":)", record.service);
  write_text(out, R"(,"device":)", record.device);
  write_text(out, R"(,"tier":)", record.tier);
  write_text(out, R"(,"country":)", record.country);
}

template <class List, class Write>
void write_list(TextWriter& out, std::string_view name, const List& list, Write write) {
  if (list.empty()) return;
  out << name << '[';
  bool first = true;
  for (const auto& item : list) {
    if (!first) out << ',';
    first = false;
    write(item);
  }
  out << ']';
}

}  // namespace

std::uint64_t run_of(const base::SipKey& table) noexcept {
  return base::siphash128(table, "run").lo;
}

std::size_t most_of(const ResetRecord& record) noexcept {
  return kFixed + kEntry * record.keys.size();
}

void write_replay(TextWriter& out, const ResetRecord& record) {
  write_hex<16>(out, R"(,"replay":{"run":)", record.run);
  write_clock(out, record.clock_ahead);
  out << R"(,"reset":{"rule":")" << record.rule << '"';
  write_hex<8>(out, R"(,"asks":)", record.asks);
  write_list(out, R"(,"keys":)", record.keys, [&](const ForgottenKey& forgotten) {
    out << '{';
    write_digest(out, R"("key":)", forgotten.key);
    write_unless_zero(out, R"(,"turn":)", beyond(forgotten.timestamp, record.at));
    out << '}';
  });
  out << "}}";
}

std::size_t most_of(const ReplayRecord& record) noexcept {
  std::size_t texts = 0;
  for (const auto text : {record.user, record.org, record.service, record.device, record.tier, record.country,
                          record.unmet, record.closed})
    texts += std::min(text.size(), kMaxJsonText + 1);
  return kFixed + kMostOfAnOctet * texts + kEntry * (record.rules.size() + record.amendments.size());
}

void write_replay(TextWriter& out, const ReplayRecord& record) {
  write_hex<16>(out, R"(,"replay":{"run":)", record.run);
  if (record.evaluated_at == base::TimePoint{}) {
    out << R"(,"unasked":true})";
    return;
  }
  write_true(out, R"(,"first":)", record.first);
  write_clock(out, record.clock_ahead);
  write_unless_zero(out, R"(,"asked_us":)", since(record.start, record.evaluated_at));
  write_unless_zero(out, R"(,"turn":)", beyond(record.timestamp, record.evaluated_at));
  write_identity(out, record);
  write_true(out, R"(,"unverified":)", record.unverified);
  if (record.load) write_number(out, R"(,"load":)", *record.load);
  write_text(out, R"(,"unmet":)", record.unmet);
  write_text(out, R"(,"closed":)", record.closed);
  write_list(out, R"(,"rules":)", record.rules,
             [&](const AppliedRule& applied) { write_rule(out, applied); });
  write_list(out, R"(,"amends":)", record.amendments,
             [&](const Amendment& done) { write_amendment(out, record, done); });
  write_true(out, R"(,"cut":)", record.cut);
  write_true(out, R"(,"lost":)", record.in_memory && record.evaluated_at >= record.lost_from);
  out << '}';
}

}  // namespace weir::observe
