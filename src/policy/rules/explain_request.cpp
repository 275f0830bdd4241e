#include "weir/policy/explain_request.hpp"

#include "weir/http/target.hpp"
#include "weir/policy/inspection.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

bool breaks_lines(std::string_view text) noexcept {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

bool is_one_line(const ExplainRequest& explain_request) {
  return !breaks_lines(explain_request.method) && !breaks_lines(explain_request.target) &&
         !breaks_lines(explain_request.host.value_or("")) &&
         std::none_of(explain_request.headers.begin(), explain_request.headers.end(), [](const auto& header) {
           return breaks_lines(header.first) || breaks_lines(header.second);
         });
}

bool says(const ExplainRequest& explain_request, std::string_view name) {
  return std::any_of(explain_request.headers.begin(), explain_request.headers.end(),
                     [&](const auto& header) { return http::equal_ignoring_case(header.first, name); });
}

std::string text_of(const ExplainRequest& explain_request) {
  const auto host = explain_request.host.value_or("");
  // A question needs no host, and only HTTP/1.0 permits a request without one.
  const bool lacks_host = explain_request.question && host.empty() && !says(explain_request, "Host");
  std::string text = explain_request.method + " " + explain_request.target +
                     (lacks_host ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  if (!host.empty()) text += "Host: " + host + "\r\n";
  for (const auto& [name, value] : explain_request.headers)
    text.append(name).append(": ").append(value).append("\r\n");
  if (!explain_request.body.empty() && !says(explain_request, "Content-Length") &&
      !says(explain_request, "Transfer-Encoding"))
    text += "Content-Length: " + std::to_string(explain_request.body.size()) + "\r\n";
  return text + "\r\n";
}

}  // namespace

std::optional<std::string> host_for_route(const ExplainRequest& explain_request,
                                          std::span<const Route> routes, const ClientSettings& settings,
                                          const ExplainTime& time, double load) {
  if (explain_request.host || says(explain_request, "Host")) return std::nullopt;
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
  const auto path = http::normalise_path(head.path, texts.path);
  const bool several = http::find_path_interpretations(head.path, path, texts.interpretations);
  return {.head = &head,
          .path = path,
          .interpretations = several ? &texts.interpretations : nullptr,
          .host = http::normalise_host(head.authority, texts.host),
          .route = {},
          .client = identify(settings, peer, head, credentials),
          .now = credentials.now};
}

std::optional<http::Fault> DescribedRequest::read(const ExplainRequest& explain_request,
                                                  const ClientSettings& settings, const ExplainTime& time,
                                                  double load) {
  if (!is_one_line(explain_request)) return http::Fault{400, "it contains a line break or a NUL byte"};
  text_ = text_of(explain_request);
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
