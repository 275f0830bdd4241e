#include "weir/policy/explain_request.hpp"

#include "weir/http/described_head.hpp"
#include "weir/http/target.hpp"
#include "weir/policy/inspection.hpp"

#include <utility>

namespace weir::policy {

namespace {

// Returns the head of the described request, with the length of its body. Returns nullopt if a part of the
// description contains a line break or a NUL byte.
std::optional<std::string> text_of(const ExplainRequest& explain_request) {
  auto fields = explain_request.headers;
  const auto& body = explain_request.body;
  if (!body.empty() && !http::has_field(fields, "Content-Length") &&
      !http::has_field(fields, "Transfer-Encoding"))
    fields.emplace_back("Content-Length", std::to_string(body.size()));
  const auto host = explain_request.host.value_or("");
  // A question needs no host, and only HTTP/1.0 permits a request without one.
  const bool lacks_host = explain_request.question && host.empty() && !http::has_field(fields, "Host");
  return http::head_text({.method = explain_request.method,
                          .target = explain_request.target,
                          .host = host,
                          .fields = fields,
                          .minor_version = lacks_host ? 0U : 1U});
}

}  // namespace

std::optional<std::string> host_for_route(const ExplainRequest& explain_request,
                                          std::span<const Route> routes, const ClientSettings& settings,
                                          const ExplainTime& time, double load) {
  if (explain_request.host || http::has_field(explain_request.headers, "Host")) return std::nullopt;
  const std::string usual = "localhost";
  auto asked = explain_request;
  for (const auto& route : routes) {
    asked.host = route.match.hosts.empty() ? usual : route.match.hosts.front().sample().value_or(usual);
    DescribedRequest described;
    if (!described.read(asked, settings, time, load) && route.match.holds(described.request()))
      return asked.host;
  }
  return usual;
}

Request request_of(const ClientSettings& settings, const base::IpAddress& peer, const http::RequestHead& head,
                   Credentials& credentials, RequestTexts& texts) {
  const auto path = head.plain_path ? head.path : http::normalise_path(head.path, texts.path);
  const bool several =
      !head.plain_path && http::find_path_interpretations(head.path, path, texts.interpretations);
  return {.head = &head,
          .path = path,
          .interpretations = several ? &texts.interpretations : nullptr,
          .host = head.host.empty() ? http::normalise_host(head.authority, texts.host) : head.host,
          .route = {},
          .client = identify(settings, peer, head, credentials),
          .now = credentials.now};
}

std::optional<http::Fault> DescribedRequest::read(const ExplainRequest& explain_request,
                                                  const ClientSettings& settings, const ExplainTime& time,
                                                  double load) {
  auto text = text_of(explain_request);
  if (!text) return http::Fault{400, "it contains a line break or a NUL byte"};
  text_ = std::move(*text);
  body_ = explain_request.body;
  if (auto fault = http::parse_request_head(text_, head_)) return fault;
  head_.bounds = settings.bounds;
  credentials_.now = time.limits;
  credentials_.machine_now = time.machine;
  credentials_.certificate_subject = explain_request.certificate_subject;
  request_ = request_of(settings, explain_request.peer, head_, credentials_, texts_);
  request_.load = load;
  request_.secure = explain_request.secure;
  request_.listener = listener_ = explain_request.listener;
  if (explain_request.question) add_question(*explain_request.question);
  return std::nullopt;
}

void DescribedRequest::add_question(const ExplainQuestion& question) {
  question_ = question;
  auto& descriptor = descriptors_.emplace_back();
  for (const auto& [key, value] : question_.descriptor) descriptor.entries.push_back({key, value});
  descriptor.exact = question_.exact;
  request_.domain = question_.domain;
  request_.descriptors = descriptors_;
  request_.stated_cost = question_.cost;
}

void DescribedRequest::show_body(std::span<const Rule> rules) {
  using State = RequestBody::State;
  const auto most = wanted_body(rules, request_);
  if (most == 0) return;
  request_.body.state = body_.empty()            ? State::Whole
                        : is_coded(head_.fields) ? State::Coded
                        : body_.size() > most    ? State::TooLong
                                                 : State::Whole;
  if (request_.body.state != State::Whole) return;
  request_.body.text = body_;
  body_names_ = body_names(rules);
  body_values_.read(body_names_, head_, body_);
  request_.body.values = &body_values_;
}

}  // namespace weir::policy
