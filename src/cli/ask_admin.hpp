// One question to the admin listener of a running weir, by blocking calls: for commands, which do nothing
// else.
#pragma once

#include "weir/base/endpoint.hpp"

#include <chrono>
#include <stdexcept>
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

// Of an answer that is not what the admin listener says to this question.
struct NoWeir : std::runtime_error {
  NoWeir() : std::runtime_error("what answers is no admin listener of weir") {}
};

// Throws NoWeir, or std::runtime_error, in words for people, where there is no answer.
[[nodiscard]] AdminReply ask_admin(const AdminRequest& request);

}  // namespace weir::app
