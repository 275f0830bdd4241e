// Measures the cost of parsing the heads of a proxied request, and of writing them again.
#include "weir/http/answer.hpp"
#include "weir/http/forwarding.hpp"
#include "weir/http/head_parser.hpp"

#include <string>

#include <benchmark/benchmark.h>

namespace weir::http {
namespace {

constexpr std::string_view kSmallRequest = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
constexpr std::string_view kBrowserRequest =
    "GET /api/v1/items?page=2&size=50 HTTP/1.1\r\nHost: api.example.com\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
    "Accept-Language: en-GB,en;q=0.7,de;q=0.3\r\nAccept-Encoding: gzip, deflate, br\r\n"
    "Connection: keep-alive\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark\r\n"
    "X-API-Key: 4f6a1c0e9b7d4e0f8a2b5c6d7e8f9a0b\r\nUpgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\n\r\n";
constexpr std::string_view kAnswer =
    "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Sat, 21 Nov 2026 07:00:00 GMT\r\n"
    "Content-Type: text/plain\r\nContent-Length: 98\r\nConnection: keep-alive\r\n\r\n";

void parse_request(benchmark::State& state, std::string_view bytes) {
  RequestHead head;
  for (auto _ : state) benchmark::DoNotOptimize(parse_request_head(bytes, head));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
void parse_answer(benchmark::State& state) {
  ResponseHead head;
  for (auto _ : state) benchmark::DoNotOptimize(parse_response_head(kAnswer, false, head));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kAnswer.size()));
}
// Measures writing a request's head. `withholds`: true if the peer is untrusted, so that weir searches for
// fields that only trusted proxies may send.
void write_request(benchmark::State& state, bool withholds) {
  RequestHead head;
  (void)parse_request_head(kBrowserRequest, head);
  const auto trusted_fields = usual_trusted_fields();
  std::string out;
  for (auto _ : state) {
    out.clear();
    write_request_head(out, head,
                       {.peer = "203.0.113.7",
                        .proto = "https",
                        .request_id = "0123456789abcdef",
                        .trusted_fields = withholds ? &trusted_fields : nullptr});
    benchmark::DoNotOptimize(out.data());
  }
}
void rate_limit(benchmark::State& state) {
  std::string out;
  const RateLimitHeaders rate_limit{.rule = "per-client",
                                    .limit = 100,
                                    .remaining = 42,
                                    .window = base::Duration{10'000'000},
                                    .more_after = base::Duration{1},
                                    .reset_at = base::TimePoint{base::Duration{1'700'000'000'000'000}}};
  for (auto _ : state) {
    out.clear();
    append_rate_limit_headers(out, rate_limit, {});
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK_CAPTURE(parse_request, small, kSmallRequest);
BENCHMARK_CAPTURE(parse_request, browser, kBrowserRequest);
BENCHMARK(parse_answer);
BENCHMARK_CAPTURE(write_request, trusted_peer, false);
BENCHMARK_CAPTURE(write_request, any_peer, true);
BENCHMARK(rate_limit);

}  // namespace
}  // namespace weir::http
