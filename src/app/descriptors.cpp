#include "app/descriptors.hpp"

#include <sys/resource.h>

namespace weir::app {

namespace {

constexpr std::size_t kOwn = 64;  // logs, listeners, Redis, epoll

}  // namespace

std::optional<std::string> raise_descriptor_limit(std::size_t max_connections) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  const auto before = limit.rlim_cur;
  limit.rlim_cur = limit.rlim_max;
  if (before < limit.rlim_max && ::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  const auto wanted = 2 * max_connections + kOwn;
  if (limit.rlim_cur >= wanted) return std::nullopt;
  return "max_connections = " + std::to_string(max_connections) + " may take " + std::to_string(wanted) +
         " descriptors, and the system allows " + std::to_string(limit.rlim_cur) +
         ": raise its limit (ulimit -Hn, LimitNOFILE=) or set a lower max_connections";
}

}  // namespace weir::app
