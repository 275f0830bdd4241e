// Sends one HTTP request to a server on the network, such as the issuer of tokens, and waits for the answer.
//
// request() blocks, so only threads that serve no clients may call it. TLS certificates are always verified.
// weir follows no redirect, uses no proxy, and keeps no connection, cookie or cache. Several threads may call
// request() at the same time. REQUIRES that the process ignores SIGPIPE.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <cstddef>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::fetch {

using Fields = std::vector<std::pair<std::string, std::string>>;  // names and values of header fields

struct Request {
  std::string url;  // "https://…"
  std::string method = "GET";
  Fields fields{};
  std::string body{};
  std::string
      ca_file{};  // PEM file: the authorities that may sign the server's certificate; empty: the system's
  base::Duration timeout{std::chrono::seconds(10)};  // for the whole exchange, with the look-up of the name
  // bound for all fields of the answer together, and for its body
  std::size_t max_bytes = std::size_t{1} << 20;
  bool allow_http = false;  // true: the URL may begin with "http://"
};

struct Response {
  unsigned status = 0;
  Fields fields{};
  std::string body{};

  // Returns the value of the first field with this name, whatever its case; empty if there is none.
  [[nodiscard]] std::string_view find(std::string_view name) const noexcept;
};

// Returns an empty text if request() accepts the URL. Otherwise returns what is wrong with it.
[[nodiscard]] std::string fault_in_url(const std::string& url, bool allow_http);

// Sends the request and waits for the answer, which may have any status. Returns an error if no complete
// answer arrives within the bounds, or if `stop` is requested.
[[nodiscard]] base::Result<Response> request(const Request& request, const std::stop_token& stop = {});

}  // namespace weir::fetch
