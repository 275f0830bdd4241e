// An exchange whose charge is settled when its answer arrives, for the tests of Settlements.
#pragma once

#include "proxy/admission/settlements.hpp"
#include "unit/proxy/lone_worker.hpp"

#include "weir/http/grpc_status.hpp"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace weir::proxy {

using http::Framing;
using observe::Settled;
using policy::Settlement;
using std::chrono::hours;
using std::chrono::minutes;

// A bucket with a capacity of 100 units that refills one unit an hour. Each request reserves ten units.
inline constexpr limit::Cost kReserved = 10;
inline const limit::Limiter kHundred = limit::TokenBucket::make({1, hours(1)}, 100).value();

inline Settlement by_status() {
  return {.charged = {{200, 299}}};
}
inline Settlement by_header() {
  return {.charged = {{200, 299}}, .kind = Settlement::Kind::Header, .name = "X-Cost"};
}
inline Settlement by_body(std::uint64_t most = 64) {
  return {.kind = Settlement::Kind::Json, .terms = {{.pointers = {"/n"}}}, .max_body = most};
}

// An exchange whose charge is settled when its answer arrives.
struct Reserved : LoneWorker {
  explicit Reserved(const std::vector<Settlement>& of_rules, policy::Store a_store = policy::Store::Memory,
                    bool is_call = false, const limit::Penalty* penalty = nullptr)
      : LoneWorker({}, &nowhere()), in(a_store) {
    if (is_call)
      buffers.head.fields.push_back({"content-type", "application/grpc", http::FieldId::ContentType});
    for (const auto& settlement : of_rules) {
      const auto index = static_cast<limit::RuleIndex>(rules.size());
      rules.push_back({.name = "r", .index = index, .rule_number = index, .limiter = kHundred});
      rules.back().settlement = settlement;
    }
    for (const auto& rule : rules) bill.add({&rule, {&kHundred, &kHundred}}, charge_of(rule, penalty));
    EXPECT_TRUE(table.charge(bill.charges(), charged_at, bill.outcomes()));
    settlements.begin(bill,
                      in == policy::Store::Memory ? Settlements::Store::Table : Settlements::Store::Redis,
                      charged_at);
  }
  bool answered(unsigned status = 200, base::Duration after = minutes(30)) {
    return settlements.answered(status, &head, charged_at + after);
  }
  bool outcome(std::string_view cost) {
    head.fields.push_back({"X-Cost", cost});
    return answered();
  }
  // Passes the head of an answer. Returns true if the settlement needs the body.
  bool begins(Framing framing, std::uint64_t length = 0) {
    head.framing = framing;
    head.content_length = length;
    EXPECT_FALSE(answered()) << "no charge is settled yet";
    return settlements.watch() != nullptr;
  }
  void pass(std::initializer_list<std::string_view> pieces) {
    ASSERT_NE(settlements.watch(), nullptr);
    for (const auto piece : pieces) settlements.see(piece);
  }
  // Returns true if the charge was settled exactly once, with the result `as`. If `as` is nullopt, returns
  // true if the charge was never settled.
  [[nodiscard]] bool settled(std::optional<Settled> as, std::size_t rule = 0) const {
    bool right = true;
    for (std::size_t i = 0; i < observe::kSettled; ++i) {
      const auto way = static_cast<Settled>(i);
      const auto times = counters.settlements(static_cast<limit::RuleIndex>(rule), way).value();
      right = right && times == (way == as ? 1U : 0U);
    }
    return right;
  }
  [[nodiscard]] limit::Cost spent(std::size_t rule = 0) const {
    return 100 - table.current_outcome(charge_of(rules[rule]), charged_at).remaining;
  }
  static limit::Charge charge_of(const policy::Rule& rule, const limit::Penalty* penalty = nullptr) {
    return {.key = {rule.index + 1U, 7},
            .limiter = &kHundred,
            .cost = kReserved,
            .rule = rule.rule_number,
            .penalty = penalty};
  }
  static const redis::RedisSettings& nowhere() {
    static const redis::RedisSettings settings;
    return settings;
  }

  const policy::Store in;
  std::vector<policy::Rule> rules;
  const base::TimePoint charged_at = clock.now();
  ExchangeBuffers buffers{worker};
  policy::Bill& bill = buffers.evaluation.local;
  Settlements settlements{worker, buffers};
  http::ResponseHead head;
};

}  // namespace weir::proxy
