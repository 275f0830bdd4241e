// The counters of the questions that one worker has answered.
#pragma once

#include "weir/observe/histogram.hpp"
#include "weir/observe/tally.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace weir::observe {

// The way by which a question came.
enum class AskApi : std::uint8_t { Decide, ForwardAuth, Rls };
inline constexpr std::array<std::string_view, 3> kAskApiNames{"decide", "forward_auth", "rls"};

enum class AskResult : std::uint8_t {
  Allowed,
  Refused,
  Error,  // weir could not decide: the call was wrong or took too long, or no permit was free
};
inline constexpr std::array<std::string_view, 3> kAskResultNames{"allowed", "refused", "error"};

enum class PermitEnd : std::uint8_t {
  Settled,   // the asker reported the actual cost or the answer
  Refunded,  // the asker returned the charges
  Expired,   // the asker did not settle the permit in time, or weir stopped
};
inline constexpr std::array<std::string_view, 3> kPermitEndNames{"settled", "refunded", "expired"};

struct AskTallies {
  [[nodiscard]] Tally& questions(AskApi api, AskResult result) noexcept {
    return questions_[static_cast<std::size_t>(api)][static_cast<std::size_t>(result)];
  }
  [[nodiscard]] const Tally& questions(AskApi api, AskResult result) const noexcept {
    return questions_[static_cast<std::size_t>(api)][static_cast<std::size_t>(result)];
  }
  [[nodiscard]] Tally& permits_ended(PermitEnd end) noexcept {
    return permits_ended_[static_cast<std::size_t>(end)];
  }
  [[nodiscard]] const Tally& permits_ended(PermitEnd end) const noexcept {
    return permits_ended_[static_cast<std::size_t>(end)];
  }

  Tally denied;         // calls without the listener's token
  Gauge permits;        // open permits
  Tally permits_full;   // questions that weir refused because no permit was free
  Histogram seconds{};  // the time of each decision

 private:
  std::array<std::array<Tally, kAskResultNames.size()>, kAskApiNames.size()> questions_;
  std::array<Tally, kPermitEndNames.size()> permits_ended_;
};

}  // namespace weir::observe
