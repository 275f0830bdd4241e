// Reads rules that pace bodies: `bandwidth = "1MiB/s"`.
#include "config/errors/other_spellings.hpp"
#include "config/read/settings_sections.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace weir::config {

namespace {

constexpr std::uint64_t kLeastInSecond = 1 << 10;
constexpr std::uint64_t kMostCount = 1'000'000'000;  // the largest count of a limit::Rate
constexpr std::uint64_t kSecond = 1'000'000;         // in µs

constexpr std::string_view kExpected =
    "; expected a size and a period from \"1KiB/s\" to \"1000MB/s\", such as \"1MiB/s\"";

// Parses a text such as "1MiB/s". Returns the octets and their period, in lowest terms; nullopt for any other
// text.
std::optional<limit::Rate> parse_bandwidth(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto octets = base::parse_size(text.substr(0, slash));
  const auto period = limit::parse_rate("1" + std::string(text.substr(slash)));
  if (!octets || !period || *octets == 0) return std::nullopt;
  const auto micros = static_cast<std::uint64_t>(period->period.count());
  const auto common = std::gcd(*octets, micros);
  __extension__ using Product = unsigned __int128;
  const auto in_second = Product{*octets} * kSecond / micros;
  if (in_second < kLeastInSecond || in_second > kMostCount || *octets / common > kMostCount)
    return std::nullopt;
  return limit::Rate{*octets / common, base::Duration(static_cast<std::int64_t>(micros / common))};
}

void refuse_bandwidth(const TableReader& table, const std::string& text) {
  const auto near = nearest_bandwidth(text);
  const bool good = near && *near != text && parse_bandwidth(*near);
  table.mistake("bandwidth", "found " + in_quotes(text) +
                                 (good ? "; write bandwidth = " + in_quotes(*near) : std::string(kExpected)));
}

void refuse_other_keys(const TableReader& rule) {
  constexpr std::string_view kBeside[] = {"name", "bandwidth", "match", "key", "on_missing", "store"};
  for (const auto& key : schema::kRule.keys)
    if (std::find(std::begin(kBeside), std::end(kBeside), key.name) == std::end(kBeside) &&
        key.instead.empty() && rule.mentions(key.name))
      rule.mistake(key.name,
                   "found beside bandwidth, which paces bodies and refuses nothing; expected it in a rule of "
                   "its own");
}

}  // namespace

void read_bandwidth(const TableReader& table, const ReadContext& context, policy::Rule& rule) {
  refuse_other_keys(table);
  rule.match = read_match(table.table("match", schema::kMatch), context);
  rule.key = read_key(table, "key", context);
  rule.on_missing = table.choice<policy::OnMissing>("on_missing");
  rule.store = policy::Store::Memory;
  if (table.has("store") && table.choice<policy::Store>("store") == policy::Store::Redis)
    table.mistake("store",
                  "found \"redis\" beside bandwidth, which each weir paces by itself; expected "
                  "store = \"memory\", or no store");
  if (rule.match.max_body != 0)
    table.mistake("match", "found a condition on the body beside bandwidth; expected conditions on the head");
  if (policy::reads_body(rule.key))
    table.mistake("key", "found a value of the body beside bandwidth; expected attributes of the head");
  if (!table.has("bandwidth")) return;
  rule.bandwidth = table.text("bandwidth");
  const auto rate = parse_bandwidth(rule.bandwidth);
  const auto limiter = rate ? limit::LeakyBucket::make_pacer(*rate, policy::Rule::kLongestPaceLead)
                            : base::Result<limit::LeakyBucket>(base::Error{""});
  if (!limiter) return refuse_bandwidth(table, rule.bandwidth);
  rule.limiter = limit::Limiter(*limiter);
}

}  // namespace weir::config
