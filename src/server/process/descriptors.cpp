#include "server/process/descriptors.hpp"

#include <sys/resource.h>

namespace weir::server {

namespace {

constexpr std::size_t kOwn = 64;  // descriptors that weir itself needs for logs, listeners, Redis and epoll

}  // namespace

Descriptors raise_descriptor_limit(std::size_t max_connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return {max_connections, {}};
  const auto before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (before < limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  const auto wanted = 2 * max_connections + kOwn;
  if (limit.rlim_cur >= wanted) return {max_connections, {}};
  const auto had = limit.rlim_cur > kOwn ? static_cast<std::size_t>(limit.rlim_cur - kOwn) / 2 : 0;
  const auto connections = had > 0 ? had : 1;
  return {connections, "max_connections = " + std::to_string(max_connections) + " needs up to " +
                           std::to_string(wanted) + " file descriptors, but the system allows " +
                           std::to_string(limit.rlim_cur) + "; weir accepts at most " +
                           std::to_string(connections) +
                           " connections; raise the limit (ulimit -Hn, LimitNOFILE=) or set a lower "
                           "max_connections"};
}

}  // namespace weir::server
