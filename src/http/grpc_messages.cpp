#include "weir/http/grpc_messages.hpp"

#include <algorithm>

namespace weir::http {

std::size_t GrpcMessageScanner::take(std::string_view octets) noexcept {
  if (octets.empty()) return 0;
  if (at_boundary()) prefix_left_ = kPrefix;
  std::size_t taken = 0;
  // Shifts the five octets of a prefix into a 32-bit number: the flag and the length. The shifts push the
  // flag, which comes first, out of the number, so the length remains.
  for (; prefix_left_ != 0 && taken < octets.size(); ++taken, --prefix_left_)
    left_ = left_ << 8U | static_cast<unsigned char>(octets[taken]);
  if (prefix_left_ != 0) return taken;
  const auto content = std::min<std::size_t>(left_, octets.size() - taken);
  left_ -= static_cast<std::uint32_t>(content);
  return taken + content;
}

}  // namespace weir::http
