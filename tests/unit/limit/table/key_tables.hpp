// A key table, functions that make charges for the table, and a function that fills the table.
#pragma once

#include "unit/limit/traffic.hpp"

#include "weir/limit/key_table.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace weir::limit {

// A fixture with two token buckets, of one token and of three tokens. Each gains one token an hour.
class KeyTableTest : public testing::Test {
 protected:
  Charge line(std::uint64_t client, const Limiter& limiter, RuleIndex rule = 0, Cost cost = 1) const {
    return {key_of(client, rule), &limiter, cost, rule, true};
  }
  static Charge shadow(Charge charge) {
    charge.enforced = false;
    return charge;
  }
  bool charge(KeyTable& table, const std::vector<Charge>& bill, TimePoint now) {
    outcomes_.assign(bill.size(), {});
    return table.charge(bill, now, outcomes_);
  }
  // Charges new keys until a new key finds no slot. Returns the number of charged keys.
  std::uint64_t fill(KeyTable& table, const Limiter& limiter) {
    std::uint64_t client = 0;
    while (charge(table, {line(client, limiter)}, kStart) && !outcomes_[0].overflow) ++client;
    return client;
  }

  const Limiter three_ = token_bucket("1/h", 3);
  const Limiter one_ = token_bucket("1/h", 1);
  std::vector<Outcome> outcomes_;
};

}  // namespace weir::limit
