// Measures the cost of a request in `policy`, before weir charges a store.
#include "weir/http/target.hpp"
#include "weir/limit/key_table.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule_finder.hpp"

#include <string>
#include <vector>

#include <benchmark/benchmark.h>

namespace weir::policy {
namespace {

constexpr NamingKeys kKeys{.table = {1, 2}, .shared = {3, 4}};

http::RequestHead browser_head() {
  http::RequestHead head;
  head.method = "GET";
  head.path = "/api/v1/things";
  for (const auto& [name, value] : {std::pair<std::string_view, std::string_view>{"Host", "api.example.com"},
                                    {"User-Agent", "Mozilla/5.0"},
                                    {"Accept", "*/*"},
                                    {"Accept-Encoding", "gzip"},
                                    {"X-API-Key", "k-0123456789abcdef0123456789abcdef"}})
    head.fields.push_back({name, value, http::FieldId::Other});
  head.fields.push_back({"X-Forwarded-For", "198.51.100.1, 203.0.113.7", http::FieldId::XForwardedFor});
  return head;
}

Rule rule_of(std::string name, std::string_view part) {
  const auto limiter = limit::TokenBucket::make({100, base::Duration(1'000'000)}, 200).value();
  Rule rule{.name = std::move(name), .limiter = limiter};
  rule.key.push_back(parse_key_part(part).value());
  rule.marks = marks_of(rule);
  return rule;
}

void collect(benchmark::State& state, std::string_view part) {
  std::vector<Rule> rules;
  for (int i = 0; i < state.range(0); ++i) rules.push_back(rule_of("rule-" + std::to_string(i), part));
  const auto head = browser_head();
  Request request{.head = &head, .path = head.path, .host = "api.example.com", .route = "api", .client = {}};
  Credentials credentials;
  request.client = identify({}, base::IpAddress::v4(0xcb007107), head, credentials);
  for (auto _ : state) {
    Evaluation evaluation;
    benchmark::DoNotOptimize(evaluation.collect(rules, request, kKeys));
    benchmark::DoNotOptimize(evaluation.local.charges().data());
  }
}
BENCHMARK_CAPTURE(collect, ip, "ip")->Arg(1)->Arg(5);
BENCHMARK_CAPTURE(collect, api_key_or_ip, "api_key|ip")->Arg(1)->Arg(5);
BENCHMARK_CAPTURE(collect, header, "header:X-API-Key")->Arg(1);

// Measures finding and testing the rules of a request. Five of the rules match the request. All other rules
// are for other paths.
void find_among(benchmark::State& state) {
  std::vector<Rule> rules;
  for (int i = 0; i < state.range(0); ++i) {
    rules.push_back(rule_of("rule-" + std::to_string(i), "ip"));
    const auto other = "/tenants/" + std::to_string(i) + "/*";
    rules.back().match.path = *PathMatch::parse(i % (state.range(0) / 5) == 0 ? "/api/*" : other);
  }
  const RuleFinder finder(rules);
  const auto head = browser_head();
  Request request{.head = &head, .path = head.path, .host = "api.example.com", .route = "api", .client = {}};
  RuleFinder::Scratch room;
  for (auto _ : state) {
    Evaluation evaluation;
    benchmark::DoNotOptimize(evaluation.collect(finder.find(rules, request, room), request, kKeys));
    benchmark::DoNotOptimize(evaluation.local.charges().data());
  }
}
BENCHMARK(find_among)->ArgName("rules")->Arg(5)->Arg(100)->Arg(1'000);

Rule rule_of_tenant(int number) {
  auto rule = rule_of("tenant-" + std::to_string(number), "descriptor:remote_address");
  rule.match.domains = {"edge"};
  rule.match.descriptor.push_back({"tenant", *TextMatch::parse("t-" + std::to_string(number))});
  rule.descriptor_keys = descriptor_keys_of(rule);
  return rule;
}

// Measures finding and testing the rules of a request. The first rule matches it; all other rules are for
// questions. `asks`: measures a question instead, which the first rule and the rule "tenant-3" match.
// `tests_all`: tests every rule, for comparison with RuleFinder.
void find_beside_questions(benchmark::State& state, bool asks, bool tests_all) {
  std::vector<Rule> rules = {rule_of("every", "ip")};
  for (int i = 1; i < state.range(0); ++i) rules.push_back(rule_of_tenant(i));
  const RuleFinder finder = tests_all ? RuleFinder() : RuleFinder(rules);
  const auto head = browser_head();
  Request request{.head = &head, .path = head.path, .host = "api.example.com", .route = "api", .client = {}};
  const std::vector<Descriptor> descriptors = {
      {.entries = {{"tenant", "t-3"}, {"remote_address", "203.0.113.7"}}, .exact = true}};
  if (asks) {
    request.domain = "edge";
    request.descriptors = descriptors;
  }
  RuleFinder::Scratch room;
  for (auto _ : state) {
    Evaluation evaluation;
    benchmark::DoNotOptimize(evaluation.collect(finder.find(rules, request, room), request, kKeys));
    benchmark::DoNotOptimize(evaluation.local.charges().data());
  }
}
BENCHMARK_CAPTURE(find_beside_questions, request, false, false)->ArgName("rules")->Arg(1)->Arg(6)->Arg(1'000);
BENCHMARK_CAPTURE(find_beside_questions, request_tests_all, false, true)
    ->ArgName("rules")
    ->Arg(6)
    ->Arg(1'000);
BENCHMARK_CAPTURE(find_beside_questions, question, true, false)->ArgName("rules")->Arg(6)->Arg(1'000);
BENCHMARK_CAPTURE(find_beside_questions, question_tests_all, true, true)
    ->ArgName("rules")
    ->Arg(6)
    ->Arg(1'000);

// Measures the choice of a route if only the last route matches. `make`: makes the condition of a route from
// the route's number.
void find_last_route(benchmark::State& state, Match (*make)(const std::string& number)) {
  std::vector<Route> routes(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i + 1 < routes.size(); ++i) routes[i].match = make(std::to_string(i));
  const auto head = browser_head();
  Request request{.head = &head, .path = head.path, .host = "api.example.com", .route = {}, .client = {}};
  const RouteFinder finder(routes);
  RouteFinder::Scratch room;
  for (auto _ : state) benchmark::DoNotOptimize(finder.choose(routes, request, room));
}

Match by_path(const std::string& number) {
  Match match;
  match.path = *PathMatch::parse("/tenants/" + number + "/*");
  return match;
}
Match by_host(const std::string& number) {
  Match match;
  match.hosts.push_back(*HostMatch::parse("*.tenant-" + number + ".example.com"));
  return match;
}
Match by_path_expression(const std::string& number) {
  Match match;
  match.path = *PathMatch::parse("~^/tenants/" + number + "/[0-9]+$");
  return match;
}
Match by_host_expression(const std::string& number) {
  Match match;
  match.hosts.push_back(*HostMatch::parse("~^tenant-" + number + "-[0-9]+[.]example[.]com$"));
  return match;
}
BENCHMARK_CAPTURE(find_last_route, path, by_path)->ArgName("routes")->Arg(10)->Arg(1'000);
BENCHMARK_CAPTURE(find_last_route, host, by_host)->ArgName("routes")->Arg(10)->Arg(1'000);
BENCHMARK_CAPTURE(find_last_route, path_regex, by_path_expression)->ArgName("routes")->Arg(10)->Arg(1'000);
BENCHMARK_CAPTURE(find_last_route, host_regex, by_host_expression)->ArgName("routes")->Arg(10)->Arg(1'000);

// Measures five local rules with five algorithms per request, from matching to the decision. The clients'
// names are computed each time. The state of the clients is already in the table.
void chain_of_five(benchmark::State& state) {
  using namespace limit;
  constexpr Rate kPlenty{1'000'000, base::Duration(1'000'000)};
  const std::vector<Limiter> limiters = {
      TokenBucket::make(kPlenty, 1'000'000).value(), Gcra::make(kPlenty, 1'000'000).value(),
      FixedWindow::make(kPlenty).value(), SlidingWindow::make(kPlenty).value(),
      SlidingLog::make(kPlenty, 10).value()};
  std::vector<Rule> rules;
  for (const auto& limiter : limiters) {
    auto rule = rule_of("rule-" + std::to_string(rules.size()), "api_key|ip");
    rule.limiter = limiter;
    rule.match.path = *PathMatch::parse("/api/*");
    rule.index = rule.rule_number = static_cast<RuleIndex>(rules.size());
    rules.push_back(std::move(rule));
  }
  const auto head = browser_head();
  Request request{.head = &head, .path = head.path, .host = "api.example.com", .route = "api", .client = {}};
  Credentials credentials;
  request.client = identify({}, base::IpAddress::v4(0xcb007107), head, credentials);
  static KeyTable table(10'000);
  base::TimePoint now{base::Duration{1'700'000'000'000'000}};
  for (auto _ : state) {
    now += base::Duration{100};
    Evaluation evaluation;
    benchmark::DoNotOptimize(evaluation.collect(rules, request, kKeys));
    table.charge(evaluation.local.charges(), now, evaluation.local.outcomes());
    const Bill* bills[] = {&evaluation.local, &evaluation.remote};
    benchmark::DoNotOptimize(decide(bills, now));
  }
}
BENCHMARK(chain_of_five);

void identify_client(benchmark::State& state) {
  ClientSettings settings;
  settings.trusted_proxies = {*base::Cidr::parse("10.0.0.0/8")};
  if (state.range(0) != 0) {
    settings.keys.emplace();
    settings.keys->add(ApiKeys::digest("k-0123456789abcdef0123456789abcdef"), {"bob", "", "pro", ""});
  }
  const auto head = browser_head();
  const auto peer = base::IpAddress::v4(0x0a000001);
  Credentials credentials;
  for (auto _ : state) benchmark::DoNotOptimize(identify(settings, peer, head, credentials));
}
BENCHMARK(identify_client)->ArgName("key_ring")->Arg(0)->Arg(1);

void fold(benchmark::State& state) {
  const auto rule = rule_of("rule", "ip");
  Bill bill;
  for (int i = 0; i < state.range(0); ++i)
    bill.add({&rule, {rule.limiter.get(), rule.limiter.get()}}, {.key = {}, .limiter = rule.limiter.get()});
  for (auto& outcome : bill.outcomes()) outcome.allowed = true;
  const Bill* bills[] = {&bill};
  for (auto _ : state) benchmark::DoNotOptimize(decide(bills, {}));
}
BENCHMARK(fold)->Arg(1)->Arg(5);

void normalise(benchmark::State& state, std::string_view path) {
  std::string scratch;
  for (auto _ : state) benchmark::DoNotOptimize(http::normalise_path(path, scratch));
}
BENCHMARK_CAPTURE(normalise, normal, "/api/v1/things/42");
BENCHMARK_CAPTURE(normalise, to_be_changed, "/api/./v1/%74hings//42");

// Searches 64 KiB for eight words, of which the text contains none. If the text has escapes of JSON or of
// forms, body_contains() also searches the decoded text.
void words_in_a_body(benchmark::State& state, std::string_view piece) {
  std::vector<std::string> words;
  for (const auto* word : {"gift card", "wire transfer", "bitcoin", "western union", "free prize", "act now",
                           "password", "social security"})
    words.push_back(body_word(word));
  std::string body;
  while (body.size() < 64 << 10) body += piece;
  for (auto _ : state) benchmark::DoNotOptimize(body_contains(body, words));
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * body.size()));
}
BENCHMARK_CAPTURE(words_in_a_body, plain, "Dear friend, please find the figures of this quarter attached. ");
BENCHMARK_CAPTURE(words_in_a_body, escaped,
                  "Dear+friend%2C \\u0070lease find the figures of this%20quarter \\/. ");
BENCHMARK_CAPTURE(words_in_a_body, hostile, "gift carpassworsocial securitwestern unio");

// Tests thirty rules with ten conditions each on query parameters. The query is parsed once per request.
void conditions_on_query(benchmark::State& state) {
  std::vector<Rule> rules;
  for (int i = 0; i < 30; ++i) {
    auto rule = rule_of("rule-" + std::to_string(i), "ip");
    for (int j = 0; j < 10; ++j)
      rule.match.query.push_back({"p" + std::to_string(j), *TextMatch::parse("~^[0-9]+$")});
    rules.push_back(std::move(rule));
  }
  std::string query = "p0=1&p1=2&p2=x";
  for (int i = 3; i < state.range(0); ++i) query += "&q" + std::to_string(i);
  auto head = browser_head();
  Request request{.head = &head, .path = head.path, .host = "api.example.com", .route = "api", .client = {}};
  for (auto _ : state) {
    head.parameters_.clear();
    head.query = query;
    Evaluation evaluation;
    benchmark::DoNotOptimize(evaluation.collect(rules, request, kKeys));
  }
}
BENCHMARK(conditions_on_query)->Arg(3)->Arg(30)->Arg(900);

}  // namespace
}  // namespace weir::policy
