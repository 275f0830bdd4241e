// The readable parts of a head that weir rejects. They are for the log, never for a decision.
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

struct RejectedHead {
  std::string_view method;
  std::string
      target;  // as it came, blanks included, but "***" for what stands before the '@' of a URL's host
  std::string_view host;  // of the URL that is the target, else the first Host line's
};

// Reads a request head that the parser rejects, or its beginning. Empty is what cannot be read. The views are
// of `bytes`.
[[nodiscard]] RejectedHead read_rejected_head(std::string_view bytes);

}  // namespace weir::http
