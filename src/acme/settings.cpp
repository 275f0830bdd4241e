#include "weir/acme/settings.hpp"

#include <algorithm>
#include <string_view>

namespace weir::acme {

namespace {

constexpr std::size_t kLongestName = 253;  // RFC 1035 §2.3.4
constexpr std::size_t kLongestLabel = 63;

bool is_label(std::string_view label) noexcept {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !label.empty() && label.size() <= kLongestLabel && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), good);
}

}  // namespace

const char* name_of(ChallengeKind kind) noexcept {
  return kind == ChallengeKind::Http01 ? "http-01" : "tls-alpn-01";
}

std::string certificate_file(const std::string& folder, const Names& names) {
  return folder + "/" + names.front() + ".pem";
}

std::string fault_in_name(const std::string& name) {
  if (name.starts_with("*"))
    return "is a wildcard, which weir cannot order, because that needs a change in the DNS; expected each "
           "host name in full, or cert and key of another tool's certificate";
  if (std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }))
    return "has capital letters; expected small letters";
  bool good = name.size() <= kLongestName && name.find('.') != std::string::npos;
  bool has_letter_last = false;
  for (std::string_view rest = name; good && !rest.empty();) {
    const auto label = rest.substr(0, rest.find('.'));
    good = is_label(label) && label.size() + 1 != rest.size();
    has_letter_last = std::any_of(label.begin(), label.end(), [](char c) { return c >= 'a' && c <= 'z'; });
    rest.remove_prefix(std::min(rest.size(), label.size() + 1));
  }
  if (good && has_letter_last) return {};
  return "is no host name; expected one such as \"www.example.com\"; write names with other letters as "
         "\"xn--…\"";
}

}  // namespace weir::acme
