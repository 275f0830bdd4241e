// Runs charge.lua and refund.lua on a real Redis at times that a test chooses. The scripts are unchanged, but
// the test puts Lua code before them, which answers the command TIME. This code also stores the keys' times
// to live instead of setting them, so that no key expires while the test's clock does not advance.
#pragma once

#include "redis/connection/command.hpp"
#include "redis/scripts/bill.hpp"
#include "unit/redis/connection/server.hpp"

#include <array>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace weir::redis {

class TimedScripts {
 public:
  explicit TimedScripts(const Server& server)
      : connection_(server.path()),
        charge_{load(charge_script()),
                load(with_little(charge_script(), {"local few = 64", "local few_permits = 32"}))},
        refund_{load(refund_script()), load(with_little(refund_script(), {"local few_permits = 32"}))} {}

  void set_clock(base::TimePoint now) { now_ = now; }
  // Sets how far weir's clock is ahead of Redis's clock. weir's clock selects the calendar windows to send.
  void set_error(base::Duration error) { error_ = error; }

  Reply charge(std::span<const limit::Charge> bill, const PermitId& hold = {}) {
    const BillRequest demand{bill, hold};
    return charge(std::span(&demand, 1));
  }
  Reply charge(std::span<const BillRequest> bills) {
    return call([&](std::string& out) {
      append_charge(out, charge_[little_], {"w"}, bills, now_ + error_, kNumber);
    });
  }
  Reply refund(const Refund& line) {
    return call([&](std::string& out) { append_refund(out, refund_[little_], {"w"}, {&line, 1}, kNumber); });
  }
  Reply reset(const limit::Key& key) { return reset(limit::Charge{key, nullptr}); }
  Reply reset(const limit::Charge& charge) {
    return call([&](std::string& out) { append_reset(out, refund_[little_], {"w"}, charge, kNumber); });
  }
  // Returns the time to live that the last charge set for the key; zero if the charge set none.
  base::Duration life_of(const limit::Key& key) {
    const auto reply = connection_.ask({"GET", "life:" + key_name("w", key)});
    return std::chrono::milliseconds(reply.kind == Reply::Kind::Text ? std::stoll(reply.text) : 0);
  }
  // Returns the time at which the key would expire; the epoch if the key does not exist.
  base::TimePoint expiry_of(const limit::Key& key) {
    const auto since = connection_.ask({"GET", "since:" + key_name("w", key)});
    if (since.kind != Reply::Kind::Text) return {};
    return base::TimePoint(base::Duration(std::stoll(since.text))) + life_of(key);
  }
  void forget(const limit::Key& key) {
    const auto name = key_name("w", key);
    connection_.ask({"DEL", name, "life:" + name, "since:" + name});
  }
  // Deletes all keys in Redis. Then switches from the normal scripts to a variant that keeps at most 2
  // entries in a string, or back. The variant makes tests reach lists and sorted sets often.
  void forget_all() {
    connection_.ask({"FLUSHDB"});
    little_ = 1 - little_;
  }
  Connection& connection() noexcept { return connection_; }

 private:
  static constexpr CallNumber kNumber = (CallNumber{1} << 53) - 1;
  static constexpr std::string_view kPrelude = R"(
local server = redis.call
local function note(key, ttl)
  server('SET', 'life:' .. key, ttl)
  server('SET', 'since:' .. key, server('GET', 'clock:s') .. ('%06d'):format(server('GET', 'clock:us')))
end
local try = redis.pcall
local redis = { pcall = function(name, key, ...)
  if name == 'PEXPIRE' then
    return note(key, ...)
  elseif name == 'DEL' then
    server('DEL', 'life:' .. key, 'since:' .. key)
  elseif name == 'RENAME' then
    server('RENAME', 'life:' .. key, 'life:' .. ...)
    server('RENAME', 'since:' .. key, 'since:' .. ...)
  end
  return try(name, key, ...)
end, call = function(name, key, ...)
  local words = { ... }
  if name == 'TIME' then
    return { server('GET', 'clock:s'), server('GET', 'clock:us') }
  elseif name == 'DEL' then
    server('DEL', 'life:' .. key, 'since:' .. key)
  elseif name == 'SET' and words[2] == 'PX' then
    note(key, words[3])
    return server('SET', key, words[1])
  elseif name == 'SET' and words[2] == 'KEEPTTL' and server('EXISTS', 'life:' .. key) == 1 then
    return server('SET', key, words[1])
  elseif name == 'SET' then
    error('a key that never expires')
  elseif name == 'PTTL' then
    local since, life = server('GET', 'since:' .. key), server('GET', 'life:' .. key)
    local now = server('GET', 'clock:s') * 1000000 + server('GET', 'clock:us')
    return since and math.floor((since - now) / 1000) + life or -2
  elseif name == 'PEXPIRE' then
    return note(key, words[1])
  end
  return server(name, key, ...)
end }
)";

  std::string load(std::string_view script) {
    return connection_.ask({"SCRIPT", "LOAD", std::string(kPrelude).append(script)}).text;
  }

  static std::string with_little(std::string_view script, std::initializer_list<std::string_view> bounds) {
    std::string text(script);
    for (const auto bound : bounds) {
      const auto at = text.find(bound);
      EXPECT_NE(at, text.npos) << bound;
      if (at != text.npos) text.replace(at + bound.size() - 2, 2, "2");
    }
    return text;
  }

  template <class Append>
  Reply call(Append append) {
    const auto us = now_.time_since_epoch().count();
    std::string out;
    append_command(
        out, {"MSET", "clock:s", std::to_string(us / 1'000'000), "clock:us", std::to_string(us % 1'000'000)});
    append(out);
    const auto reply = connection_.exchange(out, 2).back();
    EXPECT_TRUE(is_answer_to(kNumber, reply)) << reply.text;
    return reply;
  }

  Connection connection_;
  // [0]: the normal script. [1]: a variant that keeps at most 2 entries in a string, so that tests reach
  // lists and sorted sets.
  std::array<std::string, 2> charge_, refund_;
  std::size_t little_ = 0;
  base::TimePoint now_{};
  base::Duration error_{};
};

}  // namespace weir::redis
