#include "proxy/upstream/body_copy.hpp"

#include "weir/http/chunked.hpp"

namespace weir::proxy {

void BodyCopy::drop() noexcept {
  is_whole_ = false;
  std::string().swap(octets_);
}

void BodyCopy::see(std::string_view piece) {
  if (!is_whole_) return;
  if (piece.size() > kMost - octets_.size()) return drop();
  octets_ += piece;
}

void BodyCopy::append_to(std::string& out, http::Framing framing) const {
  if (octets_.empty()) return;
  const bool chunked = framing == http::Framing::Chunked;
  if (chunked) http::append_chunk_size(out, octets_.size());
  out += octets_;
  if (chunked) out += "\r\n";
}

}  // namespace weir::proxy
