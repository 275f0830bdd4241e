#include "proxy/pacing/pacing.hpp"

#include "weir/limit/key_table.hpp"
#include "weir/limit/limiter.hpp"
#include "weir/net/use_task.hpp"

#include <algorithm>
#include <span>

namespace weir::proxy {

namespace {

constexpr std::size_t kLeastPiece = 512;
constexpr std::size_t kMostPiece = 16 << 10;
constexpr base::Duration kLongestHold = std::chrono::seconds{1};
// If the bucket did not admit a piece, weir tries the charge again after this time at the earliest. Otherwise
// many waiting pieces of one key would be tried too often.
constexpr base::Duration kSoonestRetry{100'000};

}  // namespace

std::size_t piece_of(const limit::Rate& rate) noexcept {
  const auto octets = limit::Ticks{rate.count} * static_cast<std::uint64_t>(kPaceAhead.count()) /
                      static_cast<std::uint64_t>(rate.period.count());
  return static_cast<std::size_t>(std::clamp<limit::Ticks>(octets, kLeastPiece, kMostPiece));
}

std::size_t PaceGate::admit(std::size_t size) {
  if (due_ > pacing_.now()) return 0;
  if (charged_ == 0) {
    const auto piece = std::min(size, pacing_.piece());
    const auto turn = pacing_.charge(piece);
    charged_ = turn.charged ? piece : 0;
    due_ = turn.due;
  }
  return due_ > pacing_.now() ? 0 : std::min(size, charged_);
}

void PaceGate::charge_at_once(std::size_t octets) {
  while (octets > 0) {
    const auto piece = std::min(octets, pacing_.piece());
    if (!pacing_.charge(piece).charged) return;
    octets -= piece;
  }
}

base::Duration PaceGate::wait() const noexcept {
  return std::clamp(due_ - pacing_.now(), base::Duration{0}, kLongestHold);
}

net::Task<void> PaceGate::hold(base::Duration most) {
  const auto since = pacing_.now();
  pause_.expires_after(std::min(wait(), most));
  net::ErrorCode ended;
  co_await pause_.async_wait(net::use_task(ended));
  pacing_.note_wait(pacing_.now() - since);
}

Pacing::Pacing(Worker& worker, const policy::Evaluation& evaluation, base::Duration& waited)
    : worker_(worker),
      waited_(waited),
      piece_(kMostPiece),
      to_server_(*this, worker.executor),
      to_client_(*this, worker.executor) {
  for (const auto& [rule, key] : evaluation.paced) {
    charges_.push_back({.key = key, .limiter = rule->limiter.get(), .rule = rule->rule_number});
    indexes_.push_back(rule->index);
    outcomes_.emplace_back();
    piece_ = std::min(piece_, piece_of(limit::gcra_core(*rule->limiter)->rate()));
  }
}

std::unique_ptr<Pacing> Pacing::make(Worker& worker, const policy::Evaluation& evaluation,
                                     base::Duration& waited) {
  return evaluation.paced.empty() ? nullptr : std::make_unique<Pacing>(worker, evaluation, waited);
}

Pacing::Delay Pacing::charge(std::size_t octets) {
  for (auto& charge : charges_) charge.cost = octets;
  const auto now = worker_.clock.now();
  const bool charged = worker_.table.charge(std::span(charges_.data(), charges_.size()), now,
                                            std::span(outcomes_.data(), outcomes_.size()));
  const auto wait_of = [](const limit::Outcome& outcome) {
    return outcome.allowed ? outcome.delay : outcome.retry_after;
  };
  const auto slowest =
      std::max_element(outcomes_.begin(), outcomes_.end(),
                       [&](const auto& a, const auto& b) { return wait_of(a) < wait_of(b); });
  slowest_ = static_cast<std::size_t>(slowest - outcomes_.begin());
  const auto wait = wait_of(*slowest);
  if (!charged) return {false, now + std::clamp(wait, kSoonestRetry, kLongestHold)};
  return {true, now + std::max(wait - kPaceAhead, base::Duration{0})};
}

void Pacing::note_wait(base::Duration waited) noexcept {
  waited_ += waited;
  worker_.counters.bandwidth_waited(indexes_[slowest_]).add(static_cast<std::uint64_t>(waited.count()));
}

}  // namespace weir::proxy
