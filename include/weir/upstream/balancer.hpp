// Chooses the server for the next request. Pure arithmetic over plain values. Random numbers are arguments.
//
// Belongs to one worker.
#pragma once

#include "weir/upstream/upstream_settings.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weir::upstream {

// The facts of one server that a choice uses.
struct Load {
  std::uint32_t weight = 1;  // the server's share of the requests; at least 1, below 2^16
  std::uint32_t in_flight = 0;
};

class Balancer {
 public:
  // Under Balance::Hash, the bound on a server's share applies only from this number of requests in flight.
  static constexpr std::uint32_t kUnbounded = 8;

  // `identities`: the identity() of each server, in the order of the servers.
  Balancer(Balance balance, std::vector<std::uint64_t> identities);

  // Returns the index of one of the `candidates`. `candidates` has a bit for each of `loads`; at least one
  // must be set. `word` is the client's name under Balance::Hash and a random number under RandomTwo. The
  // other balances ignore `word`.
  //
  //   RoundRobin     Each in proportion to its weight, evenly spread (smooth).
  //   LeastInFlight  The smallest in_flight ÷ weight; RoundRobin among equals.
  //   RandomTwo      Draws two by weight; takes the one with the smaller in_flight ÷ weight.
  //   Hash           Always the same server for the same word. If a candidate comes or goes, only its
  //                  own words move. Skips a server with more than 5/4 of its share of the requests in
  //                  flight.
  [[nodiscard]] std::size_t choose(std::uint64_t candidates, std::span<const Load> loads,
                                   std::uint64_t word) noexcept;

  // Returns a server's identity for Balance::Hash, which is equal in every weir process. It depends on the
  // address as configured and on how many earlier servers have the same address.
  [[nodiscard]] static std::uint64_t identity(std::string_view address, std::size_t occurrence) noexcept;

 private:
  [[nodiscard]] std::size_t in_turn(std::uint64_t candidates, std::span<const Load> loads) noexcept;
  [[nodiscard]] std::size_t by_hash(std::uint64_t candidates, std::span<const Load> loads,
                                    std::uint64_t word) const noexcept;

  Balance balance_;
  std::vector<std::uint64_t> identities_;
  // The credit of each server in smooth weighted round robin: the requests due to the server by its weight
  // minus the requests that it got. Both numbers are multiplied by the sum of the weights.
  std::vector<std::int64_t> credit_;
};

}  // namespace weir::upstream
