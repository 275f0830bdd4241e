// Sends requests through real sessions: to the proxy, and to each API that answers questions. All of them
// must get the decisions that were computed by hand for the limiters. The tests move the clock of the
// sessions on between requests.
#include "unit/ask/rls/protobuf.hpp"
#include "unit/http/http2/http2_client.hpp"
#include "unit/limit/limit_vectors.hpp"
#include "unit/proxy/ask/asker.hpp"

#include "weir/policy/key_values.hpp"

#include <optional>
#include <string>

#include <boost/json.hpp>
#include <gtest/gtest.h>
#include <protozero/pbf_writer.hpp>

namespace weir::proxy {
namespace {

// A decision as a client sees it. Times are in seconds, rounded up.
struct SeenDecision {
  bool allowed = false;
  std::uint64_t remaining = 0;
  std::optional<std::int64_t> retry_after{};
  std::optional<std::int64_t> reset_after{};  // nullopt: this way of asking does not report the time
};

Configuration limited_by(const limit::Limiter& limiter, std::string_view key) {
  policy::Rule rule{.name = "vector", .limiter = limiter};
  rule.key = {*policy::parse_key_part(key)};
  rule.descriptor_keys = policy::descriptor_keys_of(rule);
  rule.cost_from = {.kind = policy::CostSource::Kind::Query, .name = "cost"};
  Configuration config;
  config.rules.push_back(std::move(rule));
  config.routes.push_back({.name = "all", .match = {}, .respond = policy::CannedResponse{.body = "here"}});
  return config;
}

// Returns the number in a header line of an answer; nullopt if there is no such line.
std::optional<std::int64_t> line_number(const std::string& answer, const std::string& name) {
  const auto at = answer.find("\r\n" + name + ": ");
  if (at == answer.npos || at > answer.find("\r\n\r\n")) return std::nullopt;
  return std::stoll(answer.substr(at + name.size() + 4));
}

SeenDecision seen_in_lines(const std::string& answer) {
  return {.allowed = answer.starts_with("HTTP/1.1 200 "),
          .remaining = static_cast<std::uint64_t>(line_number(answer, "X-RateLimit-Remaining").value_or(-1)),
          .retry_after = line_number(answer, "Retry-After")};
}

// A request to the proxy.
struct ByProxy : ConnectedClient {
  explicit ByProxy(const limit::Limiter& limiter) : ConnectedClient(limited_by(limiter, "header:x-client")) {}
  SeenDecision ask(const std::string& client, limit::Cost cost) {
    return seen_in_lines(send("GET /?cost=" + std::to_string(cost) +
                              " HTTP/1.1\r\nHost: a\r\nX-Client: " + client + "\r\n\r\n"));
  }
};

// GET /v1/forward-auth.
struct ByForwardAuth : Asker {
  explicit ByForwardAuth(const limit::Limiter& limiter) : Asker(limited_by(limiter, "header:x-client")) {}
  SeenDecision ask(const std::string& client, limit::Cost cost) {
    return seen_in_lines(
        send("GET /v1/forward-auth HTTP/1.1\r\nHost: weir\r\nX-Forwarded-For: 203.0.113.7\r\n"
             "X-Forwarded-Uri: /?cost=" +
             std::to_string(cost) + "\r\nX-Client: " + client + "\r\n\r\n"));
  }
};

// POST /v1/decide.
struct ByDecide : Asker {
  explicit ByDecide(const limit::Limiter& limiter) : Asker(limited_by(limiter, "descriptor:client")) {}
  SeenDecision ask(const std::string& client, limit::Cost cost) {
    const auto target = R"("path":"/?cost=)" + std::to_string(cost) + R"(")";
    const auto answer = decide(R"({"attributes":{"client":")" + client + R"("},)" + target + "}");
    const auto members = boost::json::parse(answer.substr(answer.find("\r\n\r\n") + 4)).as_object();
    SeenDecision seen{.allowed = members.at("allowed").as_bool(),
                      .remaining = members.at("remaining").to_number<std::uint64_t>(),
                      .reset_after = members.at("reset_after_seconds").to_number<std::int64_t>()};
    if (const auto* wait = members.if_contains("retry_after_seconds"))
      seen.retry_after = wait->to_number<std::int64_t>();
    return seen;
  }
};

// ShouldRateLimit over HTTP/2. Field numbers are those of Envoy's rls.proto.
struct ByRls : Asker {
  explicit ByRls(const limit::Limiter& limiter)
      : Asker(without_query(limited_by(limiter, "descriptor:client")), {.api = AskSettings::Api::Rls}) {}

  // Envoy states the cost as hits_addend.
  static Configuration without_query(Configuration config) {
    config.rules.front().cost_from = {};
    return config;
  }
  static std::string call_of(const std::string& client, limit::Cost cost) {
    std::string message;
    protozero::pbf_writer call(message);
    call.add_string(1, "edge");
    {
      protozero::pbf_writer descriptor(call, 2);
      protozero::pbf_writer entry(descriptor, 1);
      entry.add_string(1, "client");
      entry.add_string(2, client);
    }
    call.add_uint32(3, static_cast<std::uint32_t>(cost));
    return message;
  }
  SeenDecision ask(const std::string& client, limit::Cost cost) {
    const auto message = call_of(client, cost);
    const std::string framed = std::string(4, '\0') + static_cast<char>(message.size()) + message;
    http::Http2Client http2;
    http2.path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    const auto id = http2.request({{"content-type", "application/grpc"}, {"te", "trailers"}}, framed);
    const auto& answer = http2.answers[id];
    for (int i = 0; i < 10 && !answer.ended; ++i) EXPECT_TRUE(http2.give(send(http2.take())));
    EXPECT_NE(answer.heads.find("grpc-status=0\n"), std::string::npos) << answer.heads;
    return answer.body.size() > 5 ? seen_in(answer.body.substr(5)) : SeenDecision{};
  }
  static SeenDecision seen_in(const std::string& message) {
    const auto statuses = ask::texts_in(message, 2);
    EXPECT_EQ(statuses.size(), 1U);
    const auto reset = ask::texts_in(statuses.at(0), 4).at(0);
    const auto code = ask::number_in(message, 1);
    EXPECT_EQ(ask::number_in(statuses[0], 1), code);
    SeenDecision seen{.allowed = code == 1,  // OK; 2: OVER_LIMIT
                      .remaining = ask::number_in(statuses[0], 3),
                      .reset_after = static_cast<std::int64_t>(ask::number_in(reset, 1)) +
                                     (ask::number_in(reset, 2) != 0 ? 1 : 0)};
    for (const auto& header : ask::texts_in(message, 3))
      if (ask::texts_in(header, 1).at(0) == "Retry-After")
        seen.retry_after = std::stoll(ask::texts_in(header, 2).at(0));
    return seen;
  }
};

// `late`: how long after the request's time in the vector the answer was read. The times in `seen` may be
// shorter than expected, by at most `late`.
void expect_seen(const SeenDecision& seen, const limit::ExpectedDecision& expected, base::Duration late) {
  const auto expect_time = [&](std::int64_t seconds, base::Duration time) {
    EXPECT_LE(seconds, base::ceil_seconds(time));
    EXPECT_GE(seconds, base::ceil_seconds(std::max(time - late, base::Duration{0})));
  };
  EXPECT_EQ(seen.allowed, expected.allowed);
  EXPECT_EQ(seen.remaining, expected.remaining);
  const bool waiting_helps = !expected.allowed && expected.retry_after != base::kForever;
  EXPECT_EQ(seen.retry_after.has_value(), waiting_helps);
  if (waiting_helps && seen.retry_after) expect_time(*seen.retry_after, expected.retry_after);
  if (seen.reset_after) expect_time(*seen.reset_after, expected.reset_after);
}

template <class Way>
class Vectors : public ::testing::Test {};
using Ways = ::testing::Types<ByProxy, ByForwardAuth, ByDecide, ByRls>;
TYPED_TEST_SUITE(Vectors, Ways);

TYPED_TEST(Vectors, AreDecidedAsComputedByHand) {
  for (const auto& [name, limiter, requests] : limit::all_limit_vectors()) {
    TypeParam way(limiter);
    auto present = way.clock.now();  // the time in the vector plus the time that the test has taken
    const auto jump = [&](base::Duration ahead) {
      way.clock = net::Clock::at_offset(way.clock.offset() + ahead);
    };
    jump(limit::kVectorsBegin - present);
    base::Duration before{0};
    for (const auto& [at, client, cost, expected] : requests) {
      SCOPED_TRACE(testing::Message() << name << ": " << client << " asks for " << cost << " after "
                                      << at.count() / 60'000'000 << " min");
      jump(at - std::exchange(before, at));
      // Opens a new connection: after the jump, the previous one may have been idle for too long.
      way.connect();
      const auto seen = way.ask(client, cost);
      expect_seen(seen, expected, way.clock.now() - (limit::kVectorsBegin + at));
    }
  }
}

}  // namespace
}  // namespace weir::proxy
