// Fuzzes the first bytes of a connection. The reader must decide that they are a PROXY header, that they are
// not a PROXY header, or that it needs more bytes. More bytes must not change a decision. A header that weir
// writes must be read back unchanged.
#include "fuzz/input.hpp"

#include "weir/http/proxy_header.hpp"

#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  using Status = http::ProxyHeader::Status;
  const std::string input(reinterpret_cast<const char*>(bytes), size);
  const auto whole = http::read_proxy_header(input);
  fuzz::require(whole.status != Status::Whole || (whole.size > 0 && whole.size <= size),
                "it lies in the bytes");
  fuzz::require(whole.status == Status::Whole || !whole.ends, "what is not read tells nothing");
  fuzz::require(whole.status != Status::NeedMore || size < http::kMaxProxyHeader, "it is bounded");
  for (std::size_t cut = 0; cut < size; ++cut) {
    const std::string part = input.substr(0, cut);  // a copy, so that a sanitizer finds reads beyond its end
    const auto early = http::read_proxy_header(part);
    if (early.status == Status::NeedMore) continue;
    fuzz::require(early.status == whole.status && early.size == whole.size && early.ends == whole.ends,
                  "a verdict stands whatever comes");
    if (early.status == Status::Whole) fuzz::require(cut >= early.size, "none before its end");
  }
  if (whole.status != Status::Whole) return 0;
  std::string again;
  http::append_proxy_header(again, whole.ends);
  const auto read = http::read_proxy_header(again);
  fuzz::require(read.status == Status::Whole && read.size == again.size() && read.ends == whole.ends,
                "what is written is read back");
  return 0;
}
