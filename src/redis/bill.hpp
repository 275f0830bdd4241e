// A bill on its way to Redis and back: the arguments of charge.lua and refund.lua, and what a reply says of
// each line. Pure. The scripts' own heads say what each number means.
#pragma once

#include "redis/line.hpp"
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

// One EVALSHA of charge.lua, whose SHA-1 is `sha`. `around`: about when it will be there, by Redis's clock.
// `hold`: the permits that it may take.
void append_charge(std::string& out, std::string_view sha, std::string_view prefix,
                   std::span<const limit::Charge> charges, base::TimePoint around, const Hold& hold);

void append_refund(std::string& out, std::string_view sha, std::string_view prefix,
                   std::span<const Refund> refunds);

enum class Reading : std::uint8_t {
  Answer,     // every outcome is set, and `server_now`
  OtherTime,  // nothing was charged: Redis's time, `server_now`, is none that the bill was made around
  Nonsense,   // not a reply of charge.lua, or one that decided otherwise than the limiters do
};

[[nodiscard]] Reading read_outcomes(const Reply& reply, std::span<const limit::Charge> charges,
                                    std::span<limit::Outcome> outcomes, base::TimePoint& server_now);

// What an Answer says of the lines, if the bill was refused; else nothing.
[[nodiscard]] std::span<const std::int64_t> answers_of_refused(const Reply& reply) noexcept;

}  // namespace weir::redis
