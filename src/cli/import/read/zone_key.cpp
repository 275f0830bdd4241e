#include "cli/import/read/zone_key.hpp"

#include "cli/import/syntax/nginx_values.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace weir::cli::nginx {

namespace {

struct KnownVariable {
  std::string_view name, part;
};
constexpr std::array kVariables = std::to_array<KnownVariable>({{"binary_remote_addr", "ip"},
                                                                {"remote_addr", "ip"},
                                                                {"host", "host"},
                                                                {"http_host", "host"},
                                                                {"uri", "path"},
                                                                {"document_uri", "path"},
                                                                {"request_method", "method"}});

bool is_name_character(char c) noexcept {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the names of the variables in a text: $name or ${name}.
std::vector<std::string> variables_in(std::string_view text) {
  std::vector<std::string> names;
  while (true) {
    const auto sign = text.find('$');
    if (sign == std::string_view::npos) return names;
    text.remove_prefix(sign + 1);
    if (text.starts_with('{')) text.remove_prefix(1);
    std::size_t length = 0;
    while (length < text.size() && is_name_character(text[length])) ++length;
    std::string name(text.substr(0, length));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    names.push_back(std::move(name));
    text.remove_prefix(length);
  }
}

// Returns the name of the header field that an nginx variable names: X-Api-Key for x_api_key.
std::string field_name(std::string_view variable) {
  std::string name;
  for (const char c : variable) {
    const bool first = name.empty() || name.back() == '-';
    if (c == '_')
      name += '-';
    else
      name += first && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

void add_part(Zone& zone, const std::string& part) {
  if (std::find(zone.key.begin(), zone.key.end(), part) == zone.key.end()) zone.key.push_back(part);
}

// Adds the variable to the zone's key. Returns false if weir has no such part of a key.
bool add_variable(const std::string& name, Zone& zone) {
  const auto known = std::find_if(kVariables.begin(), kVariables.end(),
                                  [&](const KnownVariable& variable) { return variable.name == name; });
  if (known != kVariables.end()) {
    add_part(zone, std::string(known->part));
    zone.by_address = zone.by_address || known->part == "ip";
    return true;
  }
  if (name == "server_name") return zone.by_server = true;
  std::string part;
  if (const auto field = after(name, "http_")) part = "header:" + field_name(*field);
  if (const auto parameter = after(name, "arg_")) part = "query:" + *parameter;
  if (const auto cookie = after(name, "cookie_")) part = "cookie:" + *cookie;
  if (part.empty() || part.ends_with(':')) return false;
  add_part(zone, part);
  ++zone.optional;
  return true;
}

// Sets the rate of "10r/s" or "10r/m". Like nginx, rounds down to thousandths of a request per second: 10r/m
// becomes 166 thousandths.
bool read_rate(std::string_view text, Zone& zone) {
  const bool minutes = text.ends_with("r/m");
  if (!minutes && !text.ends_with("r/s")) return false;
  constexpr std::uint64_t kMost = 1'000'000;
  const auto count = parse_number(text.substr(0, text.size() - 3));
  if (!count || *count == 0 || *count > kMost) return false;
  zone.rate = *count * 1'000 / (minutes ? 60 : 1);
  const bool whole = !minutes || *count * 1'000 % 60 == 0;
  zone.limit =
      whole ? std::to_string(*count) + (minutes ? "/min" : "/s") : std::to_string(zone.rate) + "/1000s";
  return true;
}

}  // namespace

void read_key(const Directive& directive, std::string_view text, Zone& zone, Notes& notes) {
  for (const auto& name : variables_in(text)) {
    if (add_variable(name, zone)) continue;
    zone.usable = false;
    notes.add(directive,
              "key $" + name + ": no equal; weir: [[rule]] key has the attributes that weir knows");
  }
}

std::string read_zone(const Directive& directive, Zone& zone, Notes& notes) {
  zone.position = directive.position;
  std::string name;
  const auto& words = directive.arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (const auto found = after(words[i], "zone=")) name = found->substr(0, found->find(':'));
    if (const auto rate = after(words[i], "rate="); rate && !read_rate(*rate, zone)) {
      zone.usable = false;
      notes.add(directive, "rate=" + *rate + " is no rate; expected one such as 10r/s or 30r/m");
    }
  }
  if (!words.empty()) read_key(directive, words.front(), zone, notes);
  if (name.empty()) notes.add(directive, "has no zone=NAME:SIZE");
  return name;
}

}  // namespace weir::cli::nginx
