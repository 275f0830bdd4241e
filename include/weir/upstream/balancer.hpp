// Balancer chooses the server for the next request. Pure: random numbers are arguments.
//
// Pool owns the balancer, which belongs to one worker.
#pragma once

#include "weir/upstream/upstream_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::upstream {

// The facts about one server that a choice depends on.
struct Load {
  // The server gets a share of the requests in proportion to this number, which is below 2^16.
  std::uint32_t weight = 1;
  std::uint32_t in_flight = 0;
};

class Balancer {
 public:
  // The bound of Balance::Hash on a server's load applies only while the server has at least this number of
  // requests in flight.
  static constexpr std::uint32_t kUnbounded = 8;

  // `identities`: the identity() of each server, in the order of the servers.
  Balancer(Balance balance, std::vector<std::uint64_t> identities);

  // Returns the index of one of the `candidates`. `candidates` has a bit for each element of `loads`; at
  // least one bit must be set. `client_hash` is the client's name under Balance::Hash and a random number
  // under RandomTwo. The other balances ignore `client_hash`.
  //
  //   RoundRobin     Each server in proportion to its weight, evenly spread (smooth).
  //   LeastInFlight  The server with the smallest in_flight ÷ weight; RoundRobin among equals.
  //   RandomTwo      Draws two servers by weight; takes the one with the smaller in_flight ÷ weight.
  //   Hash           The same server for the same `client_hash`. If a candidate is added or removed, only
  //                  its own clients move. Skips a server with more than 5/4 of its share of the
  //                  requests in flight.
  [[nodiscard]] std::size_t choose(std::uint64_t candidates, std::span<const Load> loads,
                                   std::uint64_t client_hash) noexcept;

  // Returns a server's identity for Balance::Hash. `address`: the server's configured address. `occurrence`:
  // the number of earlier servers with the same address. All weir processes compute the same identity.
  [[nodiscard]] static std::uint64_t identity(std::string_view address, std::size_t occurrence) noexcept;

 private:
  [[nodiscard]] std::size_t in_turn(std::uint64_t candidates, std::span<const Load> loads) noexcept;
  [[nodiscard]] std::size_t by_hash(std::uint64_t candidates, std::span<const Load> loads,
                                    std::uint64_t client_hash) const noexcept;

  Balance balance_;
  std::vector<std::uint64_t> identities_;
  // For smooth weighted round robin: the credit of each server, (due − got) × the sum of all weights.
  // `due`: the number of requests due to the server by its weight. `got`: the number that the server got.
  std::vector<std::int64_t> credit_;
};

}  // namespace weir::upstream
