// A request that somebody describes, read as one that came over a connection: by the same parser, and the
// same eyes for who is asking. Pure.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/policy/identity.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weir::policy {

struct Inquiry {
  std::string method = "GET";
  std::optional<std::string> host = "";  // empty: no Host field; absent: whichever leads to a route
  std::string target = "/";              // path and query
  base::IpAddress peer;                  // who connects; a trusted proxy's X-Forwarded-For counts as ever
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string certificate_subject;  // empty: the client shows no certificate
};

// When a described request is asked about.
struct InquiryTime {
  base::TimePoint limits;   // by weir's own clock, which limits go by
  base::TimePoint machine;  // by the machine's, which the dates of tokens go by
};

// Under which host such a request leads to a route: that of the first route which takes it then, "localhost"
// where that one asks for none, or where no route would take it. Nothing where the inquiry says which it is.
[[nodiscard]] std::optional<std::string> fitting_host(const Inquiry& inquiry, std::span<const Route> routes,
                                                      const ClientSettings& settings, const InquiryTime& time,
                                                      double load);

// What a request is compared by and is not written so in its head. Capacities are used again.
struct RequestTexts {
  std::string path;
  std::string host;
  http::PathReadings readings;
};

// Returns the request as rules see it. `credentials` and `texts` outlive it.
[[nodiscard]] Request request_of(const ClientSettings& settings, const base::IpAddress& peer,
                                 const http::RequestHead& head, Credentials& credentials,
                                 RequestTexts& texts);

// Stays where it is: the request's views are into it.
class DescribedRequest {
 public:
  DescribedRequest() = default;
  DescribedRequest(const DescribedRequest&) = delete;
  DescribedRequest& operator=(const DescribedRequest&) = delete;

  // The answer that such a head would get; nullopt: it is one. An inquiry that no head could say (line breaks
  // in it) gets 400. REQUIRES that the settings outlive it.
  [[nodiscard]] std::optional<http::Fault> read(const Inquiry& inquiry, const ClientSettings& settings,
                                                const InquiryTime& time, double load);
  // Verifies the request's token, if nobody has yet.
  void verify_token() { (void)policy::verify_token(request_.client, credentials_); }
  // Shows the body to the rules as far as they ask for it. After the route is known.
  void show_body(std::span<const Rule> rules);

  [[nodiscard]] Request& request() noexcept { return request_; }
  [[nodiscard]] const Request& request() const noexcept { return request_; }
  [[nodiscard]] const http::RequestHead& head() const noexcept { return head_; }
  [[nodiscard]] std::size_t head_size() const noexcept { return text_.size(); }

 private:
  std::string text_;
  std::string body_;
  http::RequestHead head_;
  Credentials credentials_;
  RequestTexts texts_;
  Request request_;
};

}  // namespace weir::policy
