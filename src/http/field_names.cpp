#include "weir/http/field_names.hpp"

#include "http/head_lines.hpp"

namespace weir::http {

bool FieldNames::Name::matches(std::string_view name) const noexcept {
  if (prefix ? name.size() < text.size() : name.size() != text.size()) return false;
  return std::equal(text.begin(), text.end(), name.begin(),
                    [](char known, char c) { return known == detail::folded(c); });
}

void FieldNames::add(std::string_view pattern) {
  Name name{std::string(pattern), pattern.ends_with('*')};
  if (name.prefix) name.text.pop_back();
  std::transform(name.text.begin(), name.text.end(), name.text.begin(), detail::folded);
  for (std::size_t id = 0; id < kKnownFieldNames.size(); ++id)
    if (name.matches(kKnownFieldNames[id])) known_ |= std::uint32_t{1} << id;
  // A prefix of fewer than three characters matches names in many rows, so the prefix is added to all rows.
  const bool in_all_rows = name.prefix && name.text.size() < 3;
  if (!in_all_rows) return add_to(row_of(name.text), name);
  for (std::size_t row = 0; row < kRows; ++row) add_to(row, name);
}

void FieldNames::add_to(std::size_t row, const Name& name) {
  const auto this_length = std::uint64_t{1} << std::min(name.text.size(), kLongest);
  lengths_[row] |= name.prefix ? ~(this_length - 1) : this_length;
  names_.insert(names_.begin() + begins_[row + 1], name);
  for (auto later = row + 1; later <= kRows; ++later) ++begins_[later];
}

bool FieldNames::is_listed(std::size_t row, std::string_view name) const noexcept {
  return std::any_of(names_.begin() + begins_[row], names_.begin() + begins_[row + 1],
                     [&](const Name& listed) { return listed.matches(name); });
}

FieldNames usual_trusted_fields() {
  return {// The client's address.
          "X-Real-IP", "X-Forwarded", "X-Forwarded-*", "Forwarded", "Forwarded-For", "True-Client-IP",
          "Client-IP", "X-Client-IP", "X-Cluster-Client-IP", "Proxy-Client-IP", "WL-Proxy-Client-IP",
          "X-ProxyUser-IP", "X-Remote-IP", "X-Remote-Addr", "Remote-Addr", "X-Originating-IP",
          "X-Original-For", "X-Original-Forwarded-For", "X-Envoy-External-Address", "X-Envoy-Internal",
          "CF-Connecting-IP", "CF-Connecting-IPv6", "CF-Pseudo-IPv4", "Fastly-Client-IP", "Fly-Client-IP",
          "X-Azure-ClientIP", "X-Azure-SocketIP", "X-Appengine-User-IP", "CloudFront-Viewer-Address",
          "DO-Connecting-IP",
          // The scheme and host that the client used.
          "X-Original-Host", "X-Original-Proto", "X-Host", "X-Scheme", "Front-End-Https",
          // The target that the client requested. Some frameworks prefer these fields to the request line.
          "X-Original-URL", "X-Original-URI", "X-Rewrite-URL",
          // The client's certificate (RFC 9440).
          "X-SSL-*", "SSL-Client-*", "Client-Cert", "Client-Cert-Chain", "X-Client-Cert*", "X-ARR-ClientCert",
          "X-ARR-SSL", "X-Amzn-Mtls-*",
          // The client's user name, from proxies that authenticate.
          "Remote-User", "Remote-Groups", "Remote-Name", "Remote-Email", "X-Remote-User", "X-Remote-Group",
          "X-Remote-Extra-*", "X-Auth-Request-*", "X-Webauth-User", "X-Amzn-Oidc-*", "X-MS-Client-Principal*",
          "X-Goog-Authenticated-User-*", "CF-Access-Authenticated-User-Email", "Tailscale-User-*",
          // CGI turns this field into the variable HTTP_PROXY, by which programs choose their proxy.
          "Proxy"};
}

}  // namespace weir::http
