#include "weir/policy/inquiry.hpp"

#include "weir/http/target.hpp"
#include "weir/policy/inspection.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

bool breaks_lines(std::string_view text) noexcept {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

bool is_one_line(const Inquiry& inquiry) {
  return !breaks_lines(inquiry.method) && !breaks_lines(inquiry.target) &&
         !breaks_lines(inquiry.host.value_or("")) &&
         std::none_of(inquiry.headers.begin(), inquiry.headers.end(), [](const auto& header) {
           return breaks_lines(header.first) || breaks_lines(header.second);
         });
}

bool says(const Inquiry& inquiry, std::string_view name) {
  return std::any_of(inquiry.headers.begin(), inquiry.headers.end(),
                     [&](const auto& header) { return http::equal_ignoring_case(header.first, name); });
}

std::string text_of(const Inquiry& inquiry) {
  std::string text = inquiry.method + " " + inquiry.target + " HTTP/1.1\r\n";
  const auto host = inquiry.host.value_or("");
  if (!host.empty()) text += "Host: " + host + "\r\n";
  for (const auto& [name, value] : inquiry.headers)
    text.append(name).append(": ").append(value).append("\r\n");
  if (!inquiry.body.empty() && !says(inquiry, "Content-Length") && !says(inquiry, "Transfer-Encoding"))
    text += "Content-Length: " + std::to_string(inquiry.body.size()) + "\r\n";
  return text + "\r\n";
}

}  // namespace

std::optional<std::string> fitting_host(const Inquiry& inquiry, std::span<const Route> routes,
                                        const ClientSettings& settings, const InquiryTime& time,
                                        double load) {
  if (inquiry.host || says(inquiry, "Host")) return std::nullopt;
  const std::string usual = "localhost";
  auto asked = inquiry;
  for (const auto& route : routes) {
    asked.host = route.match.host.value_or(usual);
    DescribedRequest described;
    if (!described.read(asked, settings, time, load) && route.match.holds(described.request()))
      return asked.host;
  }
  return usual;
}

Request request_of(const ClientSettings& settings, const base::IpAddress& peer, const http::RequestHead& head,
                   Credentials& credentials, RequestTexts& texts) {
  const auto path = http::normalise_path(head.path, texts.path);
  const bool several = http::find_path_readings(head.path, path, texts.readings);
  return {.head = &head,
          .path = path,
          .readings = several ? &texts.readings : nullptr,
          .host = http::normalise_host(head.authority, texts.host),
          .route = {},
          .client = identify(settings, peer, head, credentials),
          .now = credentials.now};
}

std::optional<http::Fault> DescribedRequest::read(const Inquiry& inquiry, const ClientSettings& settings,
                                                  const InquiryTime& time, double load) {
  if (!is_one_line(inquiry)) return http::Fault{400, "a line break or a zero octet stands in it"};
  text_ = text_of(inquiry);
  body_ = inquiry.body;
  if (auto fault = http::parse_request_head(text_, head_)) return fault;
  head_.bounds = settings.bounds;
  credentials_.now = time.limits;
  credentials_.machine_now = time.machine;
  credentials_.certificate_subject = inquiry.certificate_subject;
  request_ = request_of(settings, inquiry.peer, head_, credentials_, texts_);
  request_.load = load;
  return std::nullopt;
}

void DescribedRequest::show_body(std::span<const Rule> rules) {
  using State = RequestBody::State;
  const auto most = wanted_body(rules, request_);
  if (most == 0) return;
  request_.body.state = body_.empty()            ? State::Whole
                        : is_coded(head_.fields) ? State::Coded
                        : body_.size() > most    ? State::TooLong
                                                 : State::Whole;
  if (request_.body.state == State::Whole) request_.body.text = body_;
}

}  // namespace weir::policy
