#include "weir/http/grpc_health.hpp"

#include "weir/http/chunked.hpp"
#include "weir/http/forwarding.hpp"
#include "weir/http/head.hpp"
#include "weir/http/head_parser.hpp"

#include <array>
#include <cstdint>
#include <optional>

namespace weir::http {

namespace {

constexpr std::size_t kPrefix = 5;  // octets before a gRPC message: a flag, and the length in 32 bits
constexpr std::uint64_t kServing = 1;

// Removes a protobuf varint from the beginning of `text`. Returns nullopt if it is incomplete.
std::optional<std::uint64_t> take_varint(std::string_view& text) noexcept {
  std::uint64_t number = 0;
  for (unsigned shift = 0; !text.empty() && shift < 64; shift += 7) {
    const auto octet = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    number |= std::uint64_t{octet & 0x7fU} << shift;
    if ((octet & 0x80U) == 0) return number;
  }
  return std::nullopt;
}

// Returns field 1 of a HealthCheckResponse, its only field; 0 (UNKNOWN) if it is missing.
std::uint64_t health_of(std::string_view message) noexcept {
  constexpr std::uint64_t kStatusField = 1U << 3U;  // field number 1, type varint
  const auto field = take_varint(message);
  return field == kStatusField ? take_varint(message).value_or(0) : 0;
}

std::string name_of(std::uint64_t health) {
  constexpr std::array kNames{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"};
  return health < kNames.size() ? kNames[health] : std::to_string(health);
}

struct Message {
  std::string body, trailers;
};

// Decodes the chunks in `text`, which follows the head, into a body and trailers.
Message read_message(std::string_view text, const ResponseHead& head) {
  Message message;
  if (head.framing == Framing::None) return message;
  ChunkDecoder decoder(ChunkDecoder::Sender::Server);
  for (;;) {
    const auto piece = decoder.next(text, &message.trailers);
    message.body += piece.data;
    text.remove_prefix(piece.used);
    if (piece.status != ChunkDecoder::Status::Data) return message;
  }
}

// Returns the value of the line "grpc-status: VALUE" in a trailer section; empty if there is none.
std::string_view status_in(std::string_view trailers) noexcept {
  constexpr std::string_view kLine = "grpc-status: ";
  const auto at = trailers.starts_with(kLine) ? 0 : trailers.find("\r\ngrpc-status: ");
  if (at == std::string_view::npos) return {};
  trailers.remove_prefix(at + kLine.size() + (at == 0 ? 0 : 2));
  return trailers.substr(0, trailers.find("\r\n"));
}

}  // namespace

std::string grpc_health_request(std::string_view host, std::string_view service) {
  std::string message;
  if (!service.empty()) {
    message += '\x0a';  // field 1, a string
    for (auto size = service.size();; size >>= 7U) {
      message += static_cast<char>(size > 0x7f ? (size & 0x7fU) | 0x80U : size);
      if (size <= 0x7f) break;
    }
    message += service;
  }
  std::string body(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) body += static_cast<char>(message.size() >> shift & 0xffU);
  body += message;
  std::string text("POST /grpc.health.v1.Health/Check HTTP/1.1\r\nHost: ");
  text.append(host).append(
      "\r\nUser-Agent: weir-health\r\nContent-Type: application/grpc\r\nContent-Length: ");
  append_number(text, body.size());
  return text.append("\r\n\r\n").append(body);
}

std::string grpc_health_fault(std::string_view response) {
  ResponseHead head;
  do {
    const auto size = find_answer_head_end(response);
    if (size == 0 || parse_response_head(response.substr(0, size), false, head))
      return "its response is not HTTP";
    response.remove_prefix(size);
  } while (head.status < 200);
  if (head.status != 200) return "it returns " + std::to_string(head.status);
  const auto message = read_message(response, head);
  const auto* const in_head = find_field(head.fields, "grpc-status");
  const auto status = in_head != nullptr ? in_head->value : status_in(message.trailers);
  if (status.empty()) return "its response has no grpc-status";
  if (status != "0") return "its grpc-status is " + std::string(status);
  if (message.body.size() < kPrefix) return "its response has no message";
  if (message.body.front() != '\0') return "its response is compressed";
  const auto health = health_of(std::string_view(message.body).substr(kPrefix));
  return health == kServing ? std::string() : "it is " + name_of(health);
}

}  // namespace weir::http
