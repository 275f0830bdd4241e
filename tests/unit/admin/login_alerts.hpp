// A test fixture: the counters of one worker with a rule "login", and alerts on the rule's refusals.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/admin/sources.hpp"
#include "weir/observe/counters.hpp"

#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace weir::admin {

class LoginAlerts : public ::testing::Test {
 protected:
  LoginAlerts() {
    RuleText rule;
    rule.name = "login";
    sources_.rules = {rule};
    sources_.counters = {&counters_};
  }
  // Returns an alert on refusals of the rule "login". `posts`: how many messages it may post per second.
  static AlertSettings alert_on_login(const char* name, const limit::Rate& above, std::uint64_t posts) {
    return {.name = name,
            .subject = "login",
            .surge = {.above = above},
            .webhook = {},
            .posts = *limit::GcraCore::make({.count = posts, .period = std::chrono::seconds(1)}, posts)};
  }

  static constexpr observe::Counters::Shape kShape{.routes = 0, .rules = 1, .upstreams = 0};
  observe::Counters counters_{kShape};
  Sources sources_;
};

}  // namespace weir::admin
