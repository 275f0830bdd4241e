// One question to the admin listener of a running weir, by blocking calls: for commands, which do nothing
// else.
#pragma once

#include "weir/base/endpoint.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace weir::app {

struct AdminReply {
  unsigned status = 0;
  std::string body;
};

struct AdminRequest {
  base::Endpoint address;
  std::string token;  // empty: none
  std::string_view method = "GET";
  std::string target;
  std::string body = {};  // JSON; empty: none
  std::chrono::seconds patience{10};
};

// Throws std::runtime_error, in words for people, where there is no answer.
[[nodiscard]] AdminReply ask_admin(const AdminRequest& request);

}  // namespace weir::app
