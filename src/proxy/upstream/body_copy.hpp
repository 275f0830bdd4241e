// A copy of the octets of a request's body that weir has sent to a server. With this copy, weir can send the
// request again to another server, although the client sends its body only once. ServerAttempt owns the copy.
//
// The copy has at most kMost octets. If weir has sent more of the body, it drops the copy, and cannot send
// the request again.
#pragma once

#include "weir/http/head.hpp"
#include "weir/proxy/body_observer.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::proxy {

class BodyCopy final : public BodyObserver {
 public:
  static constexpr std::size_t kMost = 64 << 10;

  // Begins the copy. Must be called before any octet of the body is taken.
  void begin() noexcept { is_whole_ = true; }
  // Frees the copy, and copies nothing from now on.
  void drop() noexcept;
  // Returns true if the copy has all octets that were taken so far.
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }

  void see(std::string_view piece) override;
  void complete(std::string_view) override {}
  [[nodiscard]] bool wants_trailers() const noexcept override { return false; }

  // Appends the octets taken so far to `out`, framed as the beginning of an HTTP/1.1 body: one chunk if
  // `framing` is Chunked. The rest of the body follows. REQUIRES is_whole().
  void append_to(std::string& out, http::Framing framing) const;

 private:
  std::string octets_;
  bool is_whole_ = false;
};

}  // namespace weir::proxy
