// A relay between two pairs of connected sockets, and bodies to send through it.
#pragma once

#include "unit/net/sockets.hpp"

#include "weir/proxy/http1_sink.hpp"
#include "weir/proxy/relay.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::proxy {

using http::Framing;
using Status = BodySource::Status;
using Need = Relay::Need;

inline net::Task<Need> relay_all(Relay& relay, net::ErrorCode& ec) {
  auto need = relay.advance();
  while (need == Need::Bytes || need == Need::Room) {
    ec = co_await relay.wait(need);
    if (ec) break;
    need = relay.advance();
  }
  co_return need;
}

inline std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

inline std::string coded(const std::string& body, Framing framing, std::mt19937& random) {
  if (framing != Framing::Chunked) return body;
  std::string out;
  for (std::size_t at = 0; at < body.size();) {
    const auto size = std::min<std::size_t>(1 + random() % (1 + random() % 40'000), body.size() - at);
    http::append_chunk_size(out, size);
    out.append(body, at, size).append("\r\n");
    at += size;
  }
  return out.append(http::kLastChunk);
}

// Returns the decoded body, or a word that names the fault.
inline std::string decoded(std::string_view bytes, Framing framing) {
  if (framing != Framing::Chunked) return std::string(bytes);
  http::ChunkDecoder decoder;
  std::string body;
  while (!bytes.empty()) {
    const auto piece = decoder.next(bytes);
    body += piece.data;
    bytes.remove_prefix(piece.used);
    if (piece.status == http::ChunkDecoder::Status::Done)
      return bytes.empty() ? body : "bytes behind the body";
    if (piece.status == http::ChunkDecoder::Status::Bad) return "malformed";
  }
  return "unfinished";
}

class RelayTest : public ::testing::Test {
 protected:
  void open(Framing in, Framing out_framing, std::uint64_t length = 0,
            std::uint64_t most = BodySource::kUnbounded) {
    relay.reset();
    body.reset();
    inbox.emplace(blocks);
    auto from = net::socket_pair();
    auto to = net::socket_pair();
    sender = std::move(from.theirs);
    receiver = std::move(to.theirs);
    source.emplace(context.get_executor(), from.ours);
    sink.emplace(context.get_executor(), to.ours);
    body.emplace(*source, *inbox, in, length, most);
    framed.emplace(*sink, out_framing, out);
    relay.emplace(*body, *framed);
  }
  // Puts bytes into the inbox before the relay begins, as if they had arrived together with the head.
  void came_with_the_head(std::string_view bytes) {
    char* at = inbox->space();
    ASSERT_LE(bytes.size(), inbox->room());
    bytes.copy(at, bytes.size());
    inbox->received(bytes.size());
  }
  Need relay_to_end() { return net::run(context, relay_all(*relay, ec)); }
  // Closes the sending side, and returns everything that the receiver got.
  std::string received() {
    sink->shutdown_send();
    return net::receive(receiver.number());
  }

  net::asio::io_context context{1};
  BlockPool blocks{32 << 10};
  std::optional<Inbox> inbox;
  net::Descriptor sender;
  net::Descriptor receiver;
  std::optional<net::Stream> source;
  std::optional<net::Stream> sink;
  std::string out;
  std::optional<BodySource> body;
  std::optional<Http1Sink> framed;
  std::optional<Relay> relay;
  net::ErrorCode ec;
};

inline void send_in_pieces(int fd, const std::string& bytes, std::uint32_t seed, bool close) {
  std::mt19937 random(seed);
  for (std::size_t at = 0; at < bytes.size();) {
    const auto size = std::min<std::size_t>(1 + random() % (1 + random() % 100'000), bytes.size() - at);
    net::send_all(fd, std::string_view(bytes).substr(at, size));
    at += size;
  }
  if (close) ::shutdown(fd, SHUT_WR);
}

}  // namespace weir::proxy
