// Fuzzes one limiter with the state of one key, and checks the laws that each decision must obey. The fuzzer
// chooses the limiter's parameters, the costs and the pauses. The time may decrease a little between two
// decisions, because a worker may read its clock before it gets the lock.
#include "fuzz/input.hpp"

namespace weir::fuzz {
namespace {

using base::Duration;
using base::TimePoint;
using limit::Cell;
using limit::Cost;
using limit::Limiter;
using limit::Step;

constexpr std::uint64_t kLatest = std::uint64_t{9'000'000'000'000'000};  // µs: the year 2255

struct Moment {
  const Limiter& limiter;
  const Cell& cell;
  TimePoint now;
  Cost cost;
};

bool admits(const Moment& m, Duration later) {
  return step(m.limiter, m.cell, m.now + later, m.cost).outcome.allowed;
}

void check_refusal(const Moment& m, const Step& step, Input& in) {
  const auto& out = step.outcome;
  require(step.next == m.cell, "a refused request changes nothing");
  require(out.retry_after > Duration(0), "a refusal has to be waited for");
  require(out.more_after == out.retry_after && out.delay == Duration(0), "a refusal's times agree");
  if (out.retry_after == base::kForever)
    return require(m.cost > quota(m.limiter), "what fits once is not refused forever");
  if (holds(m.limiter)) return;
  const auto wait = static_cast<std::uint64_t>(out.retry_after.count());
  require(admits(m, out.retry_after), "admitted at retry_after");
  require(!admits(m, out.retry_after - Duration(1)), "refused just before retry_after");
  require(!admits(m, Duration(static_cast<Duration::rep>(in.word() % wait))), "refused all the time before");
}

void check_admission(const Moment& m, const Step& step) {
  const auto& out = step.outcome;
  require(out.retry_after == Duration(0), "who is admitted waits for nothing");
  require(drained_at(m.limiter, step.next) >= drained_at(m.limiter, m.cell), "state never moves back");
  const auto spend = [&](Cost cost) {
    return limit::step(m.limiter, step.next, m.now, cost).outcome.allowed;
  };
  // For a leaky bucket, `remaining` is a number of requests of the cost m.cost. Otherwise it is in units.
  const bool queue = std::holds_alternative<limit::LeakyBucket>(m.limiter);
  if (out.remaining != 0 && out.remaining <= limit::kMaxCost)
    require(spend(queue ? m.cost : out.remaining), "what remains can be spent");
  if (queue) require(out.remaining != 0 || !spend(m.cost), "and no more");
  if (out.remaining < limit::kMaxCost && !queue) require(!spend(out.remaining + 1), "and no more");
  if (holds(m.limiter)) return;
  require(step.drained_at == drained_at(m.limiter, step.next), "drained_at is when its cell is");
  require(out.reset_after == step.drained_at - m.now, "reset_after says when");
}

void run(Input& in) {
  const auto limiter = limiter_from(in);
  if (!limiter) return;
  Cell cell;
  std::uint64_t now = in.between(0, kLatest);
  while (in.left() != 0) {
    const auto pause = in.between(0, kLatest);
    now = in.byte() % 8 == 0 ? now - std::min(now, pause % 1'000'000) : std::min(now + pause, kLatest);
    const Moment m{*limiter, cell, TimePoint(Duration(static_cast<Duration::rep>(now))),
                   in.between(1, limit::kMaxCost)};
    const Step next = step(*limiter, cell, m.now, m.cost);
    if (next.outcome.allowed)
      check_admission(m, next);
    else
      check_refusal(m, next, in);
    cell = next.outcome.allowed && in.byte() % 4 == 0
               ? refund(*limiter, next.next, m.now + next.outcome.delay, m.cost)
               : next.next;
  }
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::Input in(bytes, size);
  weir::fuzz::run(in);
  return 0;
}
