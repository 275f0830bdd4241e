// Makes memory run out once during a look-up of a name. Even then the look-up must end.
#include "unit/net/sockets.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/net/dns_lookup.hpp"

#include <cstdlib>
#include <new>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

void* operator new(std::size_t size) {
  return weir::tests::take_memory(size);
}
void operator delete(void* at) noexcept {
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  std::free(at);
}

namespace weir::net {
namespace {

// The name is in /etc/hosts, so c-ares reports the answer while the constructor runs.
TEST(DnsLookupMemory, LookUpEndsWithAResultIfMemoryRunsOut) {
  int ended_with_error = 0;
  for (long n = 0;; ++n) {
    asio::io_context context{1};
    const base::Endpoint name{"localhost", 80, {}};
    const NameServers name_servers{{"127.0.0.1", 1, {}}};
    std::optional<base::Result<NameAnswer>> answer;
    std::optional<DnsLookup> lookup;
    DnsLookup::Done done = [&](base::Result<NameAnswer> said) { answer = std::move(said); };
    tests::allocations_left = n;
    tests::only_one_fails = true;
    try {
      lookup.emplace(context, name, name_servers, std::move(done));
    } catch (const std::bad_alloc&) {
    }
    const bool all_succeeded = std::exchange(tests::allocations_left, -1) >= 0;
    tests::only_one_fails = false;
    if (!lookup) continue;
    ASSERT_TRUE(turn_until(context, [&] { return answer.has_value(); })) << "allocation " << n << " failed";
    if (all_succeeded) {
      EXPECT_TRUE(*answer);
      break;
    }
    if (*answer) continue;
    EXPECT_EQ(answer->error().message, "cannot resolve \"localhost\": no memory is left");
    ++ended_with_error;
  }
  EXPECT_GE(ended_with_error, 1) << "the addresses need memory";
}

}  // namespace
}  // namespace weir::net
