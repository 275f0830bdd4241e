#include "admin/pages/admission.hpp"

#include "weir/base/ip_address.hpp"
#include "weir/http/head.hpp"

#include <algorithm>

namespace weir::admin {

namespace {

bool is_port(std::string_view text) noexcept {
  return text.empty() ||
         (text.starts_with(':') && text.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

// Returns the host in `authority`, which is "name:port" or "[v6]:port", with or without the port. Returns an
// empty text if `authority` has another form.
std::string_view host_of(std::string_view authority) noexcept {
  const bool bracketed = authority.starts_with('[');
  if (bracketed && authority.find(']') == std::string_view::npos) return {};
  const auto end = std::min(bracketed ? authority.find(']') : authority.find(':'), authority.size());
  if (!is_port(authority.substr(std::min(end + (bracketed ? 1 : 0), authority.size())))) return {};
  return bracketed ? authority.substr(1, end - 1) : authority.substr(0, end);
}

bool is_json(std::string_view content_type) noexcept {
  auto type = content_type.substr(0, content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
  return http::equal_ignoring_case(type, "application/json");
}

Answer unauthorized() {
  Answer refusal =
      error_answer(401, "unauthorized", "This page requires Authorization: Bearer with the admin token.");
  refusal.challenge = true;
  return refusal;
}

Answer foreign_host() {
  return error_answer(403, "foreign_host",
                      "Without an admin token, weir accepts only an IP address, localhost or the configured "
                      "address as Host, to prevent DNS rebinding; use such a Host, or set [admin] token.");
}

Answer wrong_method(const PageRequest& question) {
  std::string methods = methods_of(path_of(question));
  Answer refusal = error_answer(405, "method_not_allowed", "This page allows " + methods + ".");
  refusal.allow = std::move(methods);
  return refusal;
}

// Returns an error response for a body that is not JSON, or that the page does not accept; otherwise nullopt.
// JSON protects against other sites: an HTML form can send only three media types, and JSON is none of them.
// A script must first send a preflight request (CORS), which this listener rejects.
std::optional<Answer> fault_of_body(const Page& page, const PageRequest& question) {
  if (question.has_body && page.body == Page::Body::None)
    return error_answer(413, "body_too_large", "This page accepts no body.");
  const bool bare = !question.has_body && question.content_type.empty();
  if (page.method == "GET" || bare || is_json(question.content_type)) return std::nullopt;
  return error_answer(415, "unsupported_media_type",
                      "Requests to this page must have Content-Type: application/json.");
}

}  // namespace

bool is_own_host(std::string_view host, const base::Endpoint& address) {
  if (host.empty() || address.is_unix()) return true;  // browsers cannot connect to unix sockets
  const auto name = host_of(host);
  return base::IpAddress::parse(name).has_value() || http::equal_ignoring_case(name, "localhost") ||
         http::equal_ignoring_case(name, address.host);
}

bool is_of_another_site(const PageRequest& question) {
  const auto site = question.fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") return true;
  if (question.origin.empty()) return false;
  const auto scheme = question.origin.find("://");
  return scheme == std::string_view::npos ||
         !http::equal_ignoring_case(question.origin.substr(scheme + 3), question.host);
}

std::optional<Answer> fault_of_asker(const Admission& admission, const PageRequest& question) {
  if (!admission.token.admits(question.authorization)) return unauthorized();
  if (!admission.token.is_required() && !is_own_host(question.host, admission.address)) return foreign_host();
  return std::nullopt;
}

std::variant<const Page*, Answer> admit(const Admission& admission, const PageRequest& question) {
  const Page* const page = find_page(path_of(question), question.method);
  // This check must come before the 404, because a client without permission must not learn which pages
  // exist.
  if (page == nullptr || page->access != Page::Access::Anybody)
    if (auto fault = fault_of_asker(admission, question)) return std::move(*fault);
  if (page == nullptr) return error_answer(404, "not_found", "There is no such page.");
  if (!answers(*page, question.method)) return wrong_method(question);
  if (page->method != "GET" && is_of_another_site(question))
    return error_answer(403, "cross_site", "The request came from a page of another site.");
  if (auto fault = fault_of_body(*page, question)) return std::move(*fault);
  return page;
}

}  // namespace weir::admin
