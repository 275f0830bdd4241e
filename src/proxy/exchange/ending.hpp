// The result of an exchange, or of one part of an exchange.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::proxy {

enum class Ending : std::uint8_t {
  Answered,  // the client got its answer
  Close,     // the client has disconnected, or weir has nothing to send
  Abort,     // the answer is incomplete and must not look complete
};

// An error answer that weir creates itself. `what` is static text. Status 0 means no error.
struct LocalError {
  unsigned status = 0;
  std::string_view what{};

  [[nodiscard]] explicit operator bool() const noexcept { return status != 0; }
};

// For a question that is not decided before an upgrade hands the limiters' state over: the value of `failure`
// in the access log, and the error. The asker must ask the new process.
inline constexpr std::string_view kTakenOver = "taken_over";
inline constexpr LocalError kTakenOverError{503, "another process of this server takes over; please retry"};

// The result of one part of an exchange: either an error that the exchange must answer, or the ending.
struct Outcome {
  LocalError error{};
  Ending ending = Ending::Close;  // valid if there is no error
};

}  // namespace weir::proxy
