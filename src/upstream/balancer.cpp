#include "weir/upstream/balancer.hpp"

#include "weir/base/siphash.hpp"

#include <bit>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

namespace weir::upstream {

namespace {

constexpr std::uint64_t bit(std::size_t at) noexcept {
  return std::uint64_t{1} << at;
}

template <class Visit>
void each(std::uint64_t candidates, Visit visit) noexcept {
  for (; candidates != 0; candidates &= candidates - 1)
    visit(static_cast<std::size_t>(std::countr_zero(candidates)));
}

std::uint64_t sum_of_weights(std::uint64_t candidates, std::span<const Load> loads) noexcept {
  std::uint64_t sum = 0;
  each(candidates, [&](std::size_t at) { sum += loads[at].weight; });
  return sum;
}

// Returns true if in_flight ÷ weight is smaller for `a` than for `b`. Compares exactly.
bool less_busy(const Load& a, const Load& b) noexcept {
  return std::uint64_t{a.in_flight} * b.weight < std::uint64_t{b.in_flight} * a.weight;
}

// Returns the candidates with the smallest in_flight ÷ weight.
std::uint64_t least_busy(std::uint64_t candidates, std::span<const Load> loads) noexcept {
  std::uint64_t least = 0;
  std::size_t best = 0;
  each(candidates, [&](std::size_t at) {
    if (least == 0 || less_busy(loads[at], loads[best])) {
      best = at;
      least = bit(at);
    } else if (!less_busy(loads[best], loads[at])) {
      least |= bit(at);
    }
  });
  return least;
}

// Draws a candidate with a probability proportional to its weight. `random` is uniform in [0, 2^32).
std::size_t draw(std::uint64_t candidates, std::span<const Load> loads, std::uint32_t random) noexcept {
  auto left = (sum_of_weights(candidates, loads) * random) >> 32U;
  for (;; candidates &= candidates - 1) {
    const auto at = static_cast<std::size_t>(std::countr_zero(candidates));
    if (left < loads[at].weight) return at;
    left -= loads[at].weight;
  }
}

std::size_t less_busy_of_two(std::uint64_t candidates, std::span<const Load> loads,
                             std::uint64_t random) noexcept {
  const auto one = draw(candidates, loads, static_cast<std::uint32_t>(random));
  const auto other = draw(candidates & ~bit(one), loads, static_cast<std::uint32_t>(random >> 32U));
  return less_busy(loads[other], loads[one]) ? other : one;
}

// Returns the candidates that may get the new request. A candidate with kUnbounded or more requests in flight
// must have fewer than 5/4 of its share. The weights divide the requests in flight and the new request into
// shares. The least busy candidate always has less than its share, so the result is never empty.
std::uint64_t within_bounds(std::uint64_t candidates, std::span<const Load> loads) noexcept {
  std::uint64_t in_flight = 1;
  each(candidates, [&](std::size_t at) { in_flight += loads[at].in_flight; });
  const auto weights = sum_of_weights(candidates, loads);
  std::uint64_t within = 0;
  each(candidates, [&](std::size_t at) {
    const auto& load = loads[at];
    if (load.in_flight < Balancer::kUnbounded || 4 * weights * load.in_flight < 5 * in_flight * load.weight)
      within |= bit(at);
  });
  return within;
}

// Mixes the bits of `client_hash`: every bit of the result depends on every bit of `client_hash`.
std::uint64_t mix(std::uint64_t client_hash) noexcept {
  client_hash = (client_hash ^ (client_hash >> 32U)) * 0xD6E8FEB86659FD93ULL;
  client_hash = (client_hash ^ (client_hash >> 32U)) * 0xD6E8FEB86659FD93ULL;
  return client_hash ^ (client_hash >> 32U);
}

}  // namespace

Balancer::Balancer(Balance balance, std::vector<std::uint64_t> identities)
    : balance_(balance), identities_(std::move(identities)), credit_(identities_.size()) {}

std::size_t Balancer::choose(std::uint64_t candidates, std::span<const Load> loads,
                             std::uint64_t client_hash) noexcept {
  assert(candidates != 0 && loads.size() == identities_.size());
  if (std::has_single_bit(candidates)) return static_cast<std::size_t>(std::countr_zero(candidates));
  switch (balance_) {
    case Balance::RoundRobin:
      return in_turn(candidates, loads);
    case Balance::RandomTwo:
      return less_busy_of_two(candidates, loads, client_hash);
    case Balance::Hash:
      return by_hash(within_bounds(candidates, loads), loads, client_hash);
    case Balance::LeastInFlight:
      break;
  }
  return in_turn(least_busy(candidates, loads), loads);
}

std::size_t Balancer::in_turn(std::uint64_t candidates, std::span<const Load> loads) noexcept {
  auto best = static_cast<std::size_t>(std::countr_zero(candidates));
  std::int64_t weights = 0;
  each(candidates, [&](std::size_t at) {
    weights += loads[at].weight;
    credit_[at] += loads[at].weight;
    if (credit_[at] > credit_[best]) best = at;
  });
  credit_[best] -= weights;
  return best;
}

// Implements weighted rendezvous hashing. `client_hash`: the hash of the request's hash key. Each server gets
// a number u, which is a hash of `client_hash` and the server's identity. The server with the smallest
// ln(1/u) ÷ weight is chosen. A server's number does not depend on the other servers. So if a server is added
// or removed, no request moves between two remaining servers. The caller has removed busy servers from
// `candidates` (within_bounds()). See Thaler and Ravishankar 1998; weights as in Schindelhauer and Schomaker
// 2005; bounded loads as in Mirrokni, Thorup and Zadimoghaddam 2018.
std::size_t Balancer::by_hash(std::uint64_t candidates, std::span<const Load> loads,
                              std::uint64_t client_hash) const noexcept {
  auto best = static_cast<std::size_t>(std::countr_zero(candidates));
  auto least = std::numeric_limits<double>::infinity();
  each(candidates, [&](std::size_t at) {
    constexpr double kScale = 1.0 / (std::uint64_t{1} << 53U);
    // between 0 and 1, both excluded
    const auto drawn = (static_cast<double>(mix(client_hash ^ identities_[at]) >> 11U) + 0.5) * kScale;
    const auto score = -std::log(drawn) / static_cast<double>(loads[at].weight);
    if (score >= least) return;
    least = score;
    best = at;
  });
  return best;
}

std::uint64_t Balancer::identity(std::string_view address, std::size_t occurrence) noexcept {
  base::SipHash128 hash(base::SipKey{});  // the key is not secret: every weir must compute the same hash
  hash.part(address);
  hash.part(std::uint64_t{occurrence});
  return hash.digest().lo;
}

}  // namespace weir::upstream
