// A settlement: an asker says what an admitted request cost, how a server answered the request, or that the
// request did not take place. Plain values.
#pragma once

#include "weir/limit/rate.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::ask {

struct SettleRequest {
  std::string permit{};
  // Exactly one of the next three members is set.
  std::optional<limit::Cost> cost{};  // the actual cost; 0: the request cost nothing
  std::optional<unsigned> status{};   // the status of the server's answer
  bool refund = false;                // true: the request did not take place

  // The rest of the server's answer; only set together with `status`.
  std::vector<std::pair<std::string, std::string>> headers{};
  std::optional<std::string> body{};  // nullopt: the asker has not sent the body
};

}  // namespace weir::ask
