// weir identifies the client, matches rules and names keys for every request. None of these steps may
// allocate memory.
#include "unit/policy/sample.hpp"

#include "weir/http/target.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

namespace {
std::atomic<unsigned> allocations{0};
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace weir::policy {
namespace {

TEST(HotPath, DecisionAllocatesNoMemory) {
  ClientSettings settings;
  settings.trusted_proxies = {cidr("10.0.0.0/8")};
  settings.keys.emplace();
  settings.keys->add(ApiKeys::digest("an API key of some length"), {"bob", "", "pro", ""});
  const auto head = head_with({{"X-API-Key", "an API key of some length"},
                               {"X-Forwarded-For", "198.51.100.1, 203.0.113.7"},
                               {"X-Tenant", "a tenant whose name is longer than a small string"}},
                              "a=b&query=parameter");
  std::vector<Rule> rules = {rule_of("one", {"api_key|ip", "header:X-Tenant"}), rule_of("two", {"user"}),
                             rule_of("three", {"query:query", "cookie:none|ip"})};
  rules[0].match.path = *PathMatch::parse("/api/*");
  rules[0].match.headers = {{"x-tenant", *TextMatch::parse("~a tenant")}};
  rules[1].on_missing = OnMissing::Ip;
  std::string path_scratch(64, '\0'), host_scratch(64, '\0');
  const auto decide_once = [&] {
    auto request = request_of(head);
    request.client = identify(settings, ip("10.0.0.1"), head);
    request.path = http::normalise_path("/x/../api/%76%31/some/longer/path", path_scratch);
    request.host = http::normalise_host("API.Example.COM:8443", host_scratch);
    Evaluation evaluation;
    evaluation.collect(rules, request, {.table = {1, 2}, .shared = {3, 4}});
    const Bill* bills[] = {&evaluation.local, &evaluation.remote};
    static_cast<void>(decide(bills, {}));
    return evaluation.local.charges().size();
  };
  EXPECT_EQ(decide_once(), 3U);  // warms up: RE2 builds its automaton on first use
  const unsigned before = allocations;
  const auto lines = decide_once();
  EXPECT_EQ(allocations - before, 0U);
  EXPECT_EQ(lines, 3U);
}

}  // namespace
}  // namespace weir::policy
