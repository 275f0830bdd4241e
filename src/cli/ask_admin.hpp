// Sends one request to the admin listener of a running weir, with blocking calls.
#pragma once

#include "weir/base/endpoint.hpp"

#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

namespace weir::cli {

struct AdminReply {
  unsigned status = 0;
  std::string body;
};

struct AdminRequest {
  base::Endpoint address;
  std::string token;  // empty: the request has no token
  std::string_view method = "GET";
  std::string target;
  std::string body = {};  // JSON; empty: the request has no body
  std::chrono::seconds patience{10};
};

// Thrown if the reply does not come from an admin listener of weir.
struct NotWeir : std::runtime_error {
  NotWeir() : std::runtime_error("this is not an admin listener of weir") {}
};

// Sends the request and returns the reply. Throws NotWeir if the reply is not from weir. Throws
// std::runtime_error with a message for people if no reply arrives in time.
[[nodiscard]] AdminReply ask_admin(const AdminRequest& request);

}  // namespace weir::cli
