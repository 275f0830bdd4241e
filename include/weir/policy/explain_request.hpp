// A request that an administrator describes. weir parses this request and identifies its client with the code
// for real requests. Pure.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/policy/body_values.hpp"
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

// The members that a described question has in addition to those of a request.
struct ExplainQuestion {
  std::string domain{};
  std::vector<std::pair<std::string, std::string>> descriptor{};  // keys and values
  bool exact = false;                                             // the meaning of Descriptor::exact
  std::optional<limit::Cost> cost{};                              // the cost that the question states
};

struct ExplainRequest {
  std::string method = "GET";
  std::optional<std::string> host = "";  // empty: the request has no Host field; nullopt: weir chooses a host
  std::string target = "/";              // path and query
  base::IpAddress peer;                  // the other end of the connection, possibly a trusted proxy
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string certificate_subject;  // empty: the client shows no certificate
  bool secure = true;               // true: the client uses TLS
  std::string listener{};           // name of the listener; empty: a listener without a name
  std::optional<ExplainQuestion>
      question{};  // set: a question to weir is described, and weir forwards nothing
};

// The time of a described request, by two clocks.
struct ExplainTime {
  base::TimePoint limits;   // the time by weir's own clock, which limits use
  base::TimePoint machine;  // the time by the machine's clock, which the dates in tokens use
};

// Chooses a host for a request whose description gives none. Tries a host of each route in turn, and returns
// the first with which the route matches. The host of a route without hosts is "localhost". Also returns
// "localhost" if no route matches. Returns nullopt if the description gives a host.
[[nodiscard]] std::optional<std::string> host_for_route(const ExplainRequest& explain_request,
                                                        std::span<const Route> routes,
                                                        const ClientSettings& settings,
                                                        const ExplainTime& time, double load);

// Storage for the texts that request_of() normalises. Reusing this object reuses its memory.
struct RequestTexts {
  std::string path;
  std::string host;
  std::string listener;
  http::PathInterpretations interpretations;
};

// Returns the request in the form that rules read. `head`, `credentials` and `texts` must outlive the result.
[[nodiscard]] Request request_of(const ClientSettings& settings, const base::IpAddress& peer,
                                 const http::RequestHead& head, Credentials& credentials,
                                 RequestTexts& texts);

// A request that an administrator describes, parsed like a real one. Not movable: the request has views into
// this object.
class DescribedRequest {
 public:
  DescribedRequest() = default;
  DescribedRequest(const DescribedRequest&) = delete;
  DescribedRequest& operator=(const DescribedRequest&) = delete;

  // Parses the described request. Returns the fault that a real request with this head would cause, or
  // nullopt. Returns a fault with status 400 if the description contains line breaks. `settings` must outlive
  // this object.
  [[nodiscard]] std::optional<http::Fault> read(const ExplainRequest& explain_request,
                                                const ClientSettings& settings, const ExplainTime& time,
                                                double load);
  // Verifies the request's token, unless it was verified before. Uses the keys that weir has now, because an
  // explanation does not wait until weir has fetched new keys.
  void verify_token() {
    credentials_.keys_current = true;
    (void)policy::verify_token(request_.client, credentials_);
  }
  // Adds the body to the request, up to the number of bytes that `rules` read. Must be called after the route
  // is known.
  void show_body(std::span<const Rule> rules);

  [[nodiscard]] Request& request() noexcept { return request_; }
  [[nodiscard]] const Request& request() const noexcept { return request_; }
  [[nodiscard]] const http::RequestHead& head() const noexcept { return head_; }
  [[nodiscard]] std::size_t head_size() const noexcept { return text_.size(); }

 private:
  void add_question(const ExplainQuestion& question);

  std::string text_;
  std::string body_;
  ExplainQuestion question_;
  std::vector<Descriptor> descriptors_;
  std::string listener_;
  BodyNames body_names_;
  BodyValues body_values_;
  http::RequestHead head_;
  Credentials credentials_;
  RequestTexts texts_;
  Request request_;
};

}  // namespace weir::policy
