// How the commands that ask a running weir do it: one request by blocking calls, because it is all that the
// process does at the moment.
#pragma once

#include "weir/base/endpoint.hpp"

#include <string>
#include <string_view>

namespace weir::app {

struct AdminReply {
  unsigned status = 0;
  std::string body;
};

// GET `target` of the admin listener at `address`; `token`: empty where it asks for none. Throws
// std::runtime_error in words where there is no whole answer within two seconds, or none of 16 MiB at most.
[[nodiscard]] AdminReply ask_admin(const base::Endpoint& address, std::string_view token,
                                   std::string_view target);

}  // namespace weir::app
