// The readable parts of a head that weir rejects. Used for the log only, never for a decision.
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

struct RejectedHead {
  std::string_view method;
  std::string target;     // as received, with blanks; a user part before the '@' of a host becomes "***"
  std::string_view host;  // of the target if that is a URL, otherwise of the first Host line; no user part
};

// Reads what it can of a rejected request head, or of its beginning. Unreadable parts are empty. Views point
// into `bytes`.
[[nodiscard]] RejectedHead read_rejected_head(std::string_view bytes);

}  // namespace weir::http
