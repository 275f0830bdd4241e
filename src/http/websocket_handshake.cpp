#include "weir/http/websocket_handshake.hpp"

#include <array>
#include <cstddef>
#include <span>

#include <openssl/evp.h>
#include <openssl/sha.h>

namespace weir::http {

namespace {

constexpr std::string_view kKey = "sec-websocket-key";
constexpr std::string_view kAccept = "sec-websocket-accept";

std::string base64(std::span<const std::uint8_t> octets) {
  // room for the longest input (a SHA-1 digest) in base64, and for the NUL that EVP_EncodeBlock() appends
  std::array<std::uint8_t, 4 * ((SHA_DIGEST_LENGTH + 2) / 3) + 1> text{};
  const int size = EVP_EncodeBlock(text.data(), octets.data(), static_cast<int>(octets.size()));
  return {reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(size)};
}

}  // namespace

std::string websocket_key(const std::array<std::uint8_t, 16>& chance) {
  return base64(chance);
}

std::string websocket_accept(std::string_view key) {
  std::string text(key);
  text += "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";  // the fixed GUID of RFC 6455 §1.3
  std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest{};
  SHA1(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), digest.data());
  return base64(digest);
}

const char* websocket_fault(const RequestHead& request, const ResponseHead& response) {
  if (!request.opens_websocket) return nullptr;
  if (response.status >= 200 && response.status < 300) return "the upstream did not open the WebSocket";
  if (response.status != 101) return nullptr;
  const auto* const key = find_field(request.fields, kKey);
  const auto* const accept = find_field(response.fields, kAccept);
  const bool confirmed = key != nullptr && accept != nullptr && accept->value == websocket_accept(key->value);
  return confirmed ? nullptr : "the upstream did not confirm the key of the WebSocket";
}

}  // namespace weir::http
