// The numbers of an algorithm, as a rule, a tier or an override gives them, made into a limiter.
#pragma once

#include "app/table_reader.hpp"

#include "weir/limit/limiter.hpp"

#include <optional>

namespace weir::app {

enum class Algorithm : std::uint8_t {
  TokenBucket,
  Gcra,
  LeakyBucket
};  // in the order of the schema's choices

struct Limiters {
  limit::Limiter limiter;
  std::optional<limit::Limiter> local_share{};  // where `replicas` was asked for
  std::optional<limit::Limiter> soft{};         // with the margin of `soft`, where that is given
  std::optional<limit::Limiter> soft_share{};   // likewise of local_share
  std::optional<limit::Rate> rate{};            // that `limit` says
};

// Reads limit, burst, queue, max_wait and soft of `table`. `replicas`: 0, or the number of weirs among which
// the limit is divided for the local share. After a mistake the limiter is some limiter.
[[nodiscard]] Limiters read_limiters(const TableReader& table, Algorithm algorithm, unsigned replicas);

}  // namespace weir::app
