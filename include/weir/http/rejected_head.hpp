// The readable parts of a head that weir rejects. weir uses these parts for the log only, never for a
// decision.
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

struct RejectedHead {
  std::string_view method;
  // The target as received, including blanks. A user name and password before the '@' of a host become "***".
  std::string target;
  // The host of the target if the target is a URL; otherwise the host of the first Host line. Without user
  // name and password.
  std::string_view host;
};

// Reads the readable parts of a rejected request head, or of its beginning. Unreadable parts stay empty.
// Views point into `bytes`.
[[nodiscard]] RejectedHead read_rejected_head(std::string_view bytes);

}  // namespace weir::http
