// A bill on its way to Redis and back: the arguments of charge.lua and refund.lua, and what a reply says of
// each line. Pure. The scripts' own heads say what each number means.
#pragma once

#include "redis/resp.hpp"

#include "weir/base/time.hpp"
#include "weir/limit/charge.hpp"
#include "weir/limit/outcome.hpp"

#include <span>
#include <string>
#include <string_view>

namespace weir::redis {

// The sources of the scripts, embedded at build.
[[nodiscard]] std::string_view charge_script() noexcept;
[[nodiscard]] std::string_view refund_script() noexcept;

// "prefix:" and the digest in 22 letters of base64url (RFC 4648 §5), in the order of its bytes.
[[nodiscard]] std::string key_name(std::string_view prefix, const limit::Key& key);

// One EVALSHA of charge.lua, whose SHA-1 is `sha`.
void append_charge(std::string& out, std::string_view sha, std::string_view prefix,
                   std::span<const limit::Charge> charges);

// One line to be given back: `departure` as limit::refund takes it.
struct Refund {
  limit::Charge charge;
  base::TimePoint departure;
};
void append_refund(std::string& out, std::string_view sha, std::string_view prefix,
                   std::span<const Refund> refunds);

// Reads charge.lua's reply. False when it is not one, or when the script decided otherwise than the limiters
// do.
[[nodiscard]] bool read_outcomes(const Reply& reply, std::span<const limit::Charge> charges,
                                 std::span<limit::Outcome> outcomes, base::TimePoint& server_now);

}  // namespace weir::redis
