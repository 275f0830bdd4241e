#include "config/errors/other_spellings.hpp"

#include "weir/base/units.hpp"
#include "weir/limit/rate.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weir::config {

namespace {

// Returns the text in lower case, without blanks and underscores.
std::string squeezed(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != ' ' && c != '_') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return plain;
}

// Returns weir's spelling of a unit of time; empty for an unknown unit.
std::string_view unit_here(std::string_view unit) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kUnitsElsewhere{
      {{"second", "s"},
       {"seconds", "s"},
       {"secs", "s"},
       {"sec", "s"},
       {"minute", "min"},
       {"minutes", "min"},
       {"mins", "min"},
       {"hours", "h"},
       {"hr", "h"},
       {"hrs", "h"},
       {"millisecond", "ms"},
       {"milliseconds", "ms"},
       {"millis", "ms"},
       {"msec", "ms"},
       {"microseconds", "us"},
       {"\u00b5s", "us"}}};
  const auto found = std::find_if(kUnitsElsewhere.begin(), kUnitsElsewhere.end(),
                                  [&](const auto& one) { return one.first == unit; });
  if (found != kUnitsElsewhere.end()) return found->second;
  return base::parse_duration("1" + std::string(unit)) ? unit : std::string_view{};
}

}  // namespace

std::optional<std::string> nearest_duration(std::string_view text) {
  const auto plain = squeezed(text);
  const auto digits = std::min(plain.find_first_not_of("0123456789"), plain.size());
  const auto number = plain.substr(0, digits);
  const auto named = std::string_view(plain).substr(digits);
  const bool weeks = named == "w" || named == "week" || named == "weeks";
  if (weeks && number.size() < 4)
    return std::to_string(7 * (number.empty() ? 1 : std::stoi(number))) + "days";
  const auto unit = named.empty() ? std::string_view("s") : unit_here(named);
  if (unit.empty() || (number.empty() && named.empty())) return std::nullopt;
  auto duration = number + std::string(unit);
  const auto parsed = base::parse_duration(number.empty() ? "1" + duration : duration);
  // Does not suggest a zero, because many settings must be above zero.
  return parsed && parsed->count() != 0 && duration != text ? std::optional(std::move(duration))
                                                            : std::nullopt;
}

std::optional<std::string> nearest_rate(std::string_view text) {
  auto plain = squeezed(text);
  if (const auto per = plain.find("per"); per != std::string::npos) plain.replace(per, 3, "/");
  const auto slash = plain.find('/');
  if (slash == std::string::npos) return std::nullopt;
  const auto digits = std::min(plain.find_first_not_of("0123456789"), slash);
  const auto counted = plain.substr(digits, slash - digits);
  constexpr std::array<std::string_view, 6> kCounted{"", "r", "req", "reqs", "request", "requests"};
  if (std::find(kCounted.begin(), kCounted.end(), counted) == kCounted.end()) return std::nullopt;
  const auto period = plain.substr(slash + 1);
  auto rate = plain.substr(0, digits) + "/" + nearest_duration(period).value_or(period);
  return rate != text && limit::parse_rate(rate) ? std::optional(std::move(rate)) : std::nullopt;
}

std::optional<std::string> nearest_bandwidth(std::string_view text) {
  auto plain = std::string(text);
  std::erase(plain, ' ');
  if (plain.ends_with("ps")) plain.replace(plain.size() - 2, 2, "/s");
  if (const auto per = plain.find("per"); per != std::string::npos) plain.replace(per, 3, "/");
  const auto slash = std::min(plain.find('/'), plain.size());
  const auto size = plain.substr(0, slash);
  const auto period = slash < plain.size() ? plain.substr(slash + 1) : "s";
  for (const std::string_view bits : {"Kb", "Mb", "Gb"})
    if (size.ends_with(bits)) return std::nullopt;
  const auto known = base::parse_size(size) ? size : nearest_size(size).value_or("");
  return known + "/" + nearest_duration(period).value_or(period);
}

std::optional<std::string> nearest_size(std::string_view text) {
  auto plain = squeezed(text);
  if (plain.ends_with("/s")) plain.resize(plain.size() - 2);  // a size that means bytes a second
  const auto digits = std::min(plain.find_first_not_of("0123456789"), plain.size());
  constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kSizesElsewhere{{{"", "B"},
                                                                                           {"b", "B"},
                                                                                           {"bytes", "B"},
                                                                                           {"k", "KiB"},
                                                                                           {"kib", "KiB"},
                                                                                           {"kb", "kB"},
                                                                                           {"m", "MiB"},
                                                                                           {"mib", "MiB"},
                                                                                           {"mb", "MB"},
                                                                                           {"g", "GiB"},
                                                                                           {"gib", "GiB"},
                                                                                           {"gb", "GB"},
                                                                                           {"byte", "B"}}};
  for (const auto& [theirs, ours] : kSizesElsewhere) {
    auto size = plain.substr(0, digits) + std::string(ours);
    if (std::string_view(plain).substr(digits) == theirs && size != text && base::parse_size(size))
      return size;
  }
  return std::nullopt;
}

std::string attribute_for(std::string_view text) {
  if (text.starts_with('$')) text.remove_prefix(1);
  std::string word;
  for (const char c : text) word += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kElsewhere{
      {{"binary_remote_addr", "ip"},
       {"remote_addr", "ip"},
       {"remote_address", "ip"},
       {"remote_ip", "ip"},
       {"client_ip", "ip"},
       {"clientip", "ip"},
       {"source_ip", "ip"},
       {"src", "ip"},
       {"ip_address", "ip"},
       {"address", "ip"},
       {"addr", "ip"},
       {"client", "ip"},
       {"consumer", "api_key"},
       {"apikey", "api_key"},
       {"api-key", "api_key"},
       {"server_name", "host"},
       {"hostname", "host"},
       {"request_uri", "path"},
       {"uri", "path"},
       {"url", "path"}}};
  for (const auto& [theirs, ours] : kElsewhere)
    if (word == theirs) return std::string(ours);
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kPrefixes{
      {{"http_", "header:"}, {"arg_", "query:"}, {"cookie_", "cookie:"}}};
  for (const auto& [prefix, ours] : kPrefixes)
    if (word.starts_with(prefix) && word.size() > prefix.size()) {
      auto name = word.substr(prefix.size());
      if (ours == "header:") std::replace(name.begin(), name.end(), '_', '-');
      return std::string(ours) + name;
    }
  return word.starts_with("x-") ? "header:" + std::string(text) : std::string();
}

}  // namespace weir::config
