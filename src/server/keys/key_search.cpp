#include "server/keys/key_search.hpp"

#include "weir/base/hex.hpp"

#include <algorithm>
#include <string_view>

namespace weir::server {

namespace {

using Counter = observe::SpaceSaving::Counter;

// A text must have at least this many digits of a digest. weir top and the dashboard show this many.
constexpr std::size_t kFewestDigits = 8;
constexpr std::string_view kDigestPrefix = "digest:";

// The two parts of a text that names a key. One of them may be empty.
struct Wanted {
  std::string label;
  std::string digits;  // digits of the digest, in lower case
};

bool are_digits(std::string_view text) {
  return text.size() >= kFewestDigits && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

Wanted read(std::span<const std::string> texts) {
  Wanted wanted;
  for (const auto& text : texts) wanted.label += (wanted.label.empty() ? "" : " ") + text;
  const auto blank = wanted.label.rfind(' ');
  const auto last = blank == std::string::npos ? 0 : blank + 1;
  std::string_view digits = std::string_view(wanted.label).substr(last);
  if (digits.starts_with(kDigestPrefix)) digits.remove_prefix(kDigestPrefix.size());
  if (!are_digits(digits)) return wanted;
  wanted.digits = digits;
  for (char& c : wanted.digits)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  wanted.label.resize(last == 0 ? 0 : blank);
  return wanted;
}

// Returns the label of the API keys of a user: for "user:paula" returns "api_key of paula". Returns an empty
// text if the label names no user.
std::string label_of_api_key(std::string label) {
  constexpr std::string_view kUser = "user:";
  const auto at = label.starts_with(kUser) ? 0 : label.find(" user:");
  if (at == std::string::npos) return {};
  return label.replace(at + (at == 0 ? 0 : 1), kUser.size(), "api_key of ");
}

// Returns true if the counter shows the client under this label. If the label is long, compares only its
// beginning, because a counter stores no more.
bool is_shown_as(const Counter& counter, std::string_view label) {
  return !label.empty() && counter.text() == label.substr(0, observe::SpaceSaving::kText);
}

bool fits(const Counter& counter, const Wanted& wanted) {
  if (!wanted.digits.empty() && !base::in_hex(counter.client).starts_with(wanted.digits)) return false;
  if (wanted.label.empty()) return !wanted.digits.empty();
  return is_shown_as(counter, wanted.label) || is_shown_as(counter, label_of_api_key(wanted.label));
}

ShownKey shown(const policy::Rule& rule, const Counter& counter) {
  std::string label(counter.text());
  if (!policy::is_readable(rule.key)) label += " " + base::in_hex(counter.client).substr(0, kFewestDigits);
  return {counter.client, counter.limiter_id, label};
}

}  // namespace

std::vector<ShownKey> find_shown(const policy::Rule& rule, const observe::TopOfRule& top,
                                 std::span<const std::string> texts) {
  const auto wanted = read(texts);
  std::vector<ShownKey> found;
  for (const auto* side : {&top.refused, &top.admitted})
    for (const auto& counter : side->counters()) {
      const bool is_known = std::any_of(found.begin(), found.end(),
                                        [&](const auto& one) { return one.name == counter.client; });
      if (!is_known && fits(counter, wanted)) found.push_back(shown(rule, counter));
    }
  return found;
}

std::optional<ShownKey> read_digest(std::span<const std::string> texts) {
  const auto wanted = read(texts);
  const auto name = base::digest_of_hex(wanted.digits);
  if (!name) return std::nullopt;
  return ShownKey{*name, std::nullopt, std::string(kDigestPrefix) + wanted.digits};
}

bool lists(const observe::TopOfRule& top, const limit::Key& name) {
  const auto has = [&](const observe::SpaceSaving& side) {
    const auto counters = side.counters();
    return std::any_of(counters.begin(), counters.end(),
                       [&](const Counter& counter) { return counter.client == name; });
  };
  return has(top.admitted) || has(top.refused);
}

}  // namespace weir::server
