// Which server is next: arithmetic over plain values. What is random about it comes as an argument.
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

// What a choice looks at of one server.
struct Load {
  std::uint32_t weight = 1;  // its share of what there is to do; at least 1, below 2^16
  std::uint32_t in_flight = 0;
};

class Balancer {
 public:
  // Under Balance::Hash a server may always have so many in flight, before the bound on its share begins.
  static constexpr std::uint32_t kUnbounded = 8;

  // `identities`: of each server, see identity().
  Balancer(Balance balance, std::vector<std::uint64_t> identities);

  // One of `candidates`: a bit for each of `loads`, at least one set. `word`: under Balance::Hash the name of
  // the client, under RandomTwo a random number; else not looked at.
  //
  //   RoundRobin     each in proportion to its weight, evenly spread (smooth)
  //   LeastInFlight  the smallest in_flight ÷ weight; among equals as RoundRobin
  //   RandomTwo      of two drawn by weight the one with the smaller in_flight ÷ weight
  //   Hash           always the same for the same word; when candidates come or go, only their own words
  //                  move. One that has more than 5/4 of its share of what is in flight is passed over.
  [[nodiscard]] std::size_t choose(std::uint64_t candidates, std::span<const Load> loads,
                                   std::uint64_t word) noexcept;

  // What stands for a server under Balance::Hash, on every weir the same: made of its address as written, and
  // of how many before it are written likewise.
  [[nodiscard]] static std::uint64_t identity(std::string_view address, std::size_t occurrence) noexcept;

 private:
  [[nodiscard]] std::size_t in_turn(std::uint64_t candidates, std::span<const Load> loads) noexcept;
  [[nodiscard]] std::size_t by_hash(std::uint64_t candidates, std::span<const Load> loads,
                                    std::uint64_t word) const noexcept;

  Balance balance_;
  std::vector<std::uint64_t> identities_;
  // Smooth weighted round robin. What each server has to its credit: the turns that were its due by its
  // weight, less those that it had, both times the sum of the weights.
  std::vector<std::int64_t> credit_;
};

}  // namespace weir::upstream
