#include "proxy/exchange/usage.hpp"

namespace weir::proxy {

net::Task<void> Usage::read() {
  auto& worker = context_.worker;
  const auto& config = context_.config;
  const auto& request = context_.buffers.request;
  if (policy::needs_claims_for_usage(config.rules, request)) context_.verify_token();
  lines_ = policy::limits_of_client(config.rules, request, config.names);
  bool answers = worker.redis != nullptr && config.names_agreed;
  for (auto& line : lines_) {
    if (line.rule->store == policy::Store::Memory) {
      line.outcome = worker.table.peek(line.charge, context_.now);
      line.known = true;
      continue;
    }
    if (!answers || context_.watch.left()) continue;
    base::TimePoint redis_now;
    auto look = worker.redis->peek(line.charge, line.outcome, redis_now);
    const auto error = co_await look;
    line.known = answers = !error;
  }
}

}  // namespace weir::proxy
