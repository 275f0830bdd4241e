// What an exchange, or a part of one, came to.
#pragma once

#include <cstdint>
#include <string_view>

namespace weir::proxy {

// What becomes of the client's connection.
enum class Ending : std::uint8_t {
  KeepAlive,  // the next request can follow
  DropRest,   // it can once the rest of the request's body was dropped
  Linger,     // close, but let the client read what was answered
  Close,      // close at once
  Abort,      // close so that what was answered cannot look complete
};

// An error that weir answers itself. `what` is static text. A status of 0 is none.
struct LocalError {
  unsigned status = 0;
  std::string_view what{};

  [[nodiscard]] explicit operator bool() const noexcept { return status != 0; }
};

// What a part of an exchange returns that answers nothing itself: an error to be answered, or the end.
struct Outcome {
  LocalError error{};
  Ending ending = Ending::Close;  // where there is no error
};

}  // namespace weir::proxy
