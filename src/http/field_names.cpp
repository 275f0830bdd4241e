#include "weir/http/field_names.hpp"

namespace weir::http {

void FieldNames::add(std::string_view pattern) {
  Name name{std::string(pattern), pattern.ends_with('*')};
  if (name.prefix) name.text.pop_back();
  const auto first = name.text.empty() ? '-' : name.text.front();
  std::transform(name.text.begin(), name.text.end(), name.text.begin(), detail::folded);
  const auto length = std::min(name.text.size(), kLongest);
  const auto this_length = std::uint64_t{1} << length;
  lengths_[row(first)] |= name.prefix ? ~(this_length - 1) : this_length;
  names_.push_back(std::move(name));
}

bool FieldNames::is_listed(std::string_view name) const noexcept {
  return std::any_of(names_.begin(), names_.end(), [&](const Name& listed) {
    const auto length = listed.text.size();
    if (listed.prefix ? name.size() < length : name.size() != length) return false;
    return std::equal(listed.text.begin(), listed.text.end(), name.begin(),
                      [](char known, char c) { return known == detail::folded(c); });
  });
}

FieldNames usual_trusted_fields() {
  return {// The client's address, and the scheme, host and port that it used.
          "X-Real-IP", "X-Forwarded", "X-Forwarded-*", "Forwarded", "Forwarded-For", "True-Client-IP",
          "Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "CF-Connecting-IP", "CF-Connecting-IPv6",
          "Fastly-Client-IP", "X-Original-For", "X-Original-Forwarded-For", "X-Original-Host",
          "X-Original-Proto",
          // The target that it asked for, which some frameworks believe more than the request line.
          "X-Original-URL", "X-Original-URI", "X-Rewrite-URL",
          // Its certificate (RFC 9440).
          "X-SSL-*", "SSL-Client-*", "Client-Cert", "Client-Cert-Chain",
          // CGI takes it for the variable HTTP_PROXY, by which programs choose their proxy.
          "Proxy"};
}

}  // namespace weir::http
