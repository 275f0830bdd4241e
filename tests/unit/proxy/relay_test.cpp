#include "weir/proxy/relay.hpp"

#include "unit/net/tls.hpp"
#include "unit/proxy/relay_fixture.hpp"

#include <algorithm>
#include <future>
#include <optional>
#include <random>
#include <string>

#include <boost/asio/error.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

TEST_F(RelayTest, BodyArrivesCompletelyInEveryFraming) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::pair<Framing, Framing> ways[] = {
      {Framing::Length, Framing::Length},      {Framing::Length, Framing::Chunked},
      {Framing::Chunked, Framing::Chunked},    {Framing::Chunked, Framing::UntilClose},
      {Framing::UntilClose, Framing::Chunked}, {Framing::UntilClose, Framing::UntilClose}};
  for (const std::size_t size : {0, 1, 100, 4095, 4096, 4097, 16'384, 70'000, 1 << 20, 5 << 20}) {
    for (const auto& [in, to] : ways) {
      SCOPED_TRACE(std::to_string(size) + " bytes, " + std::to_string(int(in)) + " to " +
                   std::to_string(int(to)));
      const auto original = random_bytes(random, size);
      const bool closes = in == Framing::UntilClose;
      const auto bytes = coded(original, in, random) + (closes ? "" : "next");
      open(in, to, size);
      const auto early = std::min<std::size_t>(random() % 20'000, bytes.size());
      came_with_the_head(std::string_view(bytes).substr(0, early));
      out = "HEAD";
      auto writing = std::async(std::launch::async, send_in_pieces, sender.number(), bytes.substr(early),
                                std::uint32_t(random()), closes);
      auto reading = std::async(std::launch::async, [this] { return net::receive(receiver.number()); });
      const auto need = relay_to_end();
      EXPECT_EQ(need, Need::Nothing) << ec.message();
      if (need != Need::Nothing) source->close();  // otherwise the writing thread would block
      sink->shutdown_send();
      const auto got = reading.get();
      writing.get();
      ASSERT_EQ(got.substr(0, 4), "HEAD");
      ASSERT_EQ(need, Need::Nothing);
      EXPECT_TRUE(decoded(std::string_view(got).substr(4), to) == original);
      EXPECT_EQ(framed->sent(), got.size());
      EXPECT_EQ(body->received(), size);
      EXPECT_TRUE(body->complete());
      const auto after = std::string(inbox->unread()) +
                         (closes ? "" : net::receive(source->native_handle(), 4 - inbox->unread().size()));
      EXPECT_EQ(after, closes ? "" : "next");
    }
  }
}

TEST_F(RelayTest, SendsOnlyTheHeadIfThereIsNoBody) {
  open(Framing::None, Framing::None);
  came_with_the_head("GET /next");
  out = "HEAD";
  EXPECT_EQ(relay_to_end(), Need::Nothing);
  EXPECT_EQ(received(), "HEAD");
  EXPECT_EQ(inbox->unread(), "GET /next");
}

TEST_F(RelayTest, ReceivedDataIsSentBeforeTheRelayWaits) {
  open(Framing::Chunked, Framing::Chunked);
  came_with_the_head("5\r\nhello\r\n");
  out = "HEAD";
  EXPECT_EQ(relay->advance(), Need::Bytes);
  EXPECT_EQ(received(), "HEAD5\r\nhello\r\n");
}

// If the receiver does not read, the relay stops reading from the source. So one body takes no more memory
// than the sockets' buffers and one block.
TEST_F(RelayTest, RelayStopsReadingIfTheReceiverDoesNotRead) {
  std::mt19937 random(5);
  const auto original = random_bytes(random, 5 << 20);
  open(Framing::Length, Framing::Chunked, original.size());
  ::fcntl(sender.number(), F_SETFL, O_NONBLOCK);
  net::Running relaying(context, relay_all(*relay, ec));
  std::size_t offered = 0;
  for (int idle = 0; idle < 10;) {
    context.restart();
    const auto turned = context.poll();
    const auto sent =
        ::send(sender.number(), original.data() + offered, original.size() - offered, MSG_NOSIGNAL);
    if (sent > 0) offered += static_cast<std::size_t>(sent);
    idle = turned == 0 && sent <= 0 ? idle + 1 : 0;
  }
  EXPECT_FALSE(relaying.done());
  EXPECT_LT(body->received(), 1U << 20);
  EXPECT_LT(offered, 2U << 20);
  EXPECT_LE(out.size(), 32U << 10);

  ::fcntl(sender.number(), F_SETFL, 0);
  auto writing = std::async(std::launch::async, [&] {
    net::send_all(sender.number(), std::string_view(original).substr(offered));
  });
  auto reading = std::async(std::launch::async, [this] { return net::receive(receiver.number()); });
  EXPECT_EQ(relaying.result(), Need::Nothing);
  source->close();
  sink->shutdown_send();
  EXPECT_TRUE(decoded(reading.get(), Framing::Chunked) == original);
}

TEST_F(RelayTest, TruncatedBodyIsNotForwardedAsACompleteBody) {
  const std::string whole = "5;x\r\nhello\r\n3\r\nabc\r\n0\r\nA: b\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    open(Framing::Chunked, Framing::Chunked);
    out.clear();
    net::send_all(sender.number(), std::string_view(whole).substr(0, size));
    sender.close();
    ASSERT_EQ(relay_to_end(), Need::Source) << size;
    EXPECT_EQ(relay->status(), Status::Cut);
    EXPECT_FALSE(body->complete());
    EXPECT_EQ(decoded(received(), Framing::Chunked), "unfinished") << size;
  }
  for (const auto to : {Framing::Length, Framing::Chunked}) {
    open(Framing::Length, to, 10);
    out.clear();
    net::send_all(sender.number(), "123456789");
    sender.close();
    EXPECT_EQ(relay_to_end(), Need::Source);
    EXPECT_EQ(relay->status(), Status::Cut);
    EXPECT_EQ(received(), to == Framing::Length ? "123456789" : "9\r\n123456789\r\n");
  }
}

// If the end of the connection marks the end of a body, a reset must not complete the body, because the reset
// may have lost bytes.
TEST_F(RelayTest, BodyIsNotCompleteAfterAConnectionReset) {
  open(Framing::UntilClose, Framing::Chunked);
  out.clear();
  net::ErrorCode ignored;
  ASSERT_EQ(source->try_write("unread", {}, ignored), 6U);
  sender.close();  // the socket has unread bytes, so close() sends a reset
  EXPECT_EQ(relay_to_end(), Need::Bytes);
  EXPECT_EQ(ec, net::asio::error::connection_reset);
  EXPECT_FALSE(body->complete());
  EXPECT_EQ(received(), "");

  open(Framing::Length, Framing::Length, 5);
  ASSERT_EQ(source->try_write("unread", {}, ignored), 6U);
  sender.close();
  EXPECT_EQ(relay_to_end(), Need::Source);
  EXPECT_EQ(relay->status(), Status::Cut);
}

// The server side of a TLS connection, and a client that has completed the handshake.
struct TlsPair {
  TlsPair(net::asio::io_context& context, SSL_CTX* tls) : pair(net::socket_pair()) {
    stream.emplace(context.get_executor(), pair.ours, tls);
    auto shaken = std::async(std::launch::async, [this] { return client.handshake(); });
    EXPECT_FALSE(net::run(context, stream->handshake()));
    EXPECT_TRUE(shaken.get());
  }
  // Writes `text` up to `most` times, until the socket's buffer is full. Returns the number of writes.
  int fill(std::string_view text, int most) {
    int count = 0;
    net::ErrorCode ec;
    while (count < most && stream->try_write(text, {}, ec) == text.size()) ++count;
    return count;
  }
  net::Pair pair;
  std::optional<net::Stream> stream;
  net::TlsClient client{pair.theirs.number()};
};

// OpenSSL has a part of a head, so the head counts as begun. If weir sent an error answer now, the client
// would read the answer as the rest of the head.
TEST_F(RelayTest, HeadCountsAsPartlySentOnceOpenSslHasAPartOfIt) {
  const net::Certificates certificates;
  const auto tls = net::make_tls_context(certificates.settings()).value();
  const std::string text(100, 'x');
  const int fit = TlsPair(context, tls.get()).fill(text, 1 << 20);
  TlsPair full(context, tls.get());
  ASSERT_EQ(full.fill(text, fit), fit);
  ASSERT_FALSE(full.stream->owes_write());
  open(Framing::Chunked, Framing::Chunked);
  out = "the head";
  framed.emplace(*full.stream, Framing::Chunked, out);
  relay.emplace(*body, *framed);
  EXPECT_EQ(relay->advance(), Need::Room);
  EXPECT_EQ(framed->sent(), 0U);
  ASSERT_FALSE(framed->is_untouched());
  net::send_all(sender.number(), "no chunk\r\n");
  EXPECT_FALSE(net::run(context, body->fill()));
  EXPECT_EQ(relay->advance(), Need::Room) << "the head is sent first";
  EXPECT_EQ(full.client.receive(text.size() * static_cast<std::size_t>(fit)).size(),
            text.size() * static_cast<std::size_t>(fit));
  EXPECT_EQ(relay_to_end(), Need::Source);
  EXPECT_EQ(full.client.receive(8), "the head");
}

// weir has read the body before it decided about the request. It must still forward the body, and count the
// body only once.
TEST_F(RelayTest, BodyThatWasReadBeforeTheDecisionIsRelayedCompletely) {
  for (const auto in : {Framing::Length, Framing::Chunked})
    for (const std::size_t looked_at : {0U, 1U, 5000U, 9000U}) {
      std::mt19937 random(7);
      const auto whole = random_bytes(random, 9000);
      const auto bytes = coded(whole, in, random);
      open(in, Framing::Chunked, whole.size());
      out.clear();
      came_with_the_head(bytes);
      std::string taken;
      std::string_view piece;
      while (taken.size() < looked_at && body->take(piece) == Status::Piece) taken += piece;
      if (taken.size() == whole.size()) {
        EXPECT_EQ(body->take(piece), Status::End);
        EXPECT_TRUE(body->complete());
      }
      body->put_back(taken);
      EXPECT_EQ(body->at_hand().size() >= whole.size(), taken.empty() || taken.size() == whole.size());
      EXPECT_EQ(relay_to_end(), Need::Nothing);
      EXPECT_EQ(body->received(), whole.size());
      EXPECT_EQ(decoded(received(), Framing::Chunked), whole);
    }
}

TEST_F(RelayTest, InvalidChunkEndsTheRelayAfterTheValidPart) {
  open(Framing::Chunked, Framing::Chunked);
  out.clear();
  net::send_all(sender.number(), "5\r\nhello\r\nX\r\n");
  EXPECT_EQ(relay_to_end(), Need::Source);
  EXPECT_EQ(relay->status(), Status::Bad);
  EXPECT_EQ(received(), "5\r\nhello\r\n");
}

TEST_F(RelayTest, DoesNotForwardMoreThanTheMaximumBodySize) {
  for (const auto in : {Framing::Length, Framing::Chunked, Framing::UntilClose}) {
    std::mt19937 random(1);
    const auto bytes = coded(std::string(1001, 'x'), in, random);
    open(in, Framing::Chunked, 1001, 1000);
    out.clear();
    net::send_all(sender.number(), bytes);
    sender.close();
    EXPECT_EQ(relay_to_end(), Need::Source);
    EXPECT_EQ(relay->status(), Status::TooLarge);
    EXPECT_EQ(decoded(received(), Framing::Chunked), "unfinished");

    open(in, Framing::Chunked, 1001, 1001);
    out.clear();
    net::send_all(sender.number(), bytes);
    sender.close();
    EXPECT_EQ(relay_to_end(), Need::Nothing);
  }
}

TEST_F(RelayTest, ReportsAReceiverThatDisconnected) {
  open(Framing::Length, Framing::Length, 5 << 20);
  receiver.close();
  out = "HEAD";
  EXPECT_EQ(relay_to_end(), Need::SinkBroken);
  EXPECT_EQ(framed->sent(), 0U);
}

// An observer that records the pieces of a body.
class Witness : public BodyObserver {
 public:
  void see(std::string_view piece) override { seen += piece; }
  void complete(std::string_view trailers) override {
    ++completed;
    said = trailers;
  }
  std::string seen, said;
  int completed = 0;
};

TEST_F(RelayTest, ObserverSeesTheWholeBodyInEveryFraming) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const auto in : {Framing::Length, Framing::Chunked, Framing::UntilClose})
    for (const std::size_t size : {0U, 1U, 4'096U, 4'097U, 300'000U}) {
      const auto sent = random_bytes(random, size);
      open(in, Framing::Chunked, size);
      Witness witness;
      out.clear();
      framed.emplace(*sink, Framing::Chunked, out);
      relay.emplace(*body, *framed, &witness);
      auto sending = std::async(std::launch::async, send_in_pieces, sender.number(), coded(sent, in, random),
                                seed, true);
      auto receiving = std::async(std::launch::async, [this] { return net::receive(receiver.number()); });
      EXPECT_EQ(relay_to_end(), Need::Nothing);
      sink->shutdown_send();
      EXPECT_EQ(decoded(receiving.get(), Framing::Chunked), sent);
      EXPECT_TRUE(witness.seen == sent) << witness.seen.size() << " of " << size;
      EXPECT_EQ(witness.completed, 1);
    }
}

TEST_F(RelayTest, ObserverSeesTheTrailersEvenIfTheReceiverTakesNone) {
  open(Framing::Chunked, Framing::Chunked, 0);
  Witness witness;
  out.clear();
  framed.emplace(*sink, Framing::Chunked, out);
  relay.emplace(*body, *framed, &witness);
  send_in_pieces(sender.number(), "2\r\nok\r\n0\r\ngrpc-status: 7\r\n\r\n", 1, true);
  EXPECT_EQ(relay_to_end(), Need::Nothing);
  EXPECT_TRUE(witness.said.starts_with("grpc-status: 7\r\n")) << witness.said;
}

// A gate that admits `left` octets.
class Allowance : public BodyGate {
 public:
  std::size_t admit(std::string_view octets) override {
    const auto admitted = std::min(left, octets.size());
    left -= admitted;
    return admitted;
  }
  std::size_t left = 0;
};

TEST_F(RelayTest, SendsOnlyTheOctetsThatTheGateAdmits) {
  for (const auto in : {Framing::Length, Framing::Chunked}) {
    open(in, Framing::Length, 8);
    came_with_the_head(in == Framing::Length ? "helloabc" : "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n");
    out = "HEAD";
    Allowance gate;
    Witness witness;
    framed.emplace(*sink, Framing::Length, out);
    relay.emplace(*body, *framed, &witness, &gate);
    EXPECT_EQ(relay->advance(), Need::Gate);
    EXPECT_EQ(relay->advance(), Need::Gate) << "the gate is asked again";
    gate.left = 2;
    EXPECT_EQ(relay->advance(), Need::Gate);
    EXPECT_EQ(witness.seen, "he");
    gate.left = 4;
    EXPECT_EQ(relay->advance(), Need::Gate);
    EXPECT_EQ(witness.seen, "helloa");
    gate.left = 2;
    EXPECT_EQ(relay->advance(), Need::Nothing);
    EXPECT_EQ(witness.seen, "helloabc");
    EXPECT_EQ(received(), "HEADhelloabc");
    EXPECT_EQ(body->received(), 8U);
  }
}

// A pacer that admits `left` octets.
class Trickle : public Pacer {
 public:
  std::size_t admit(std::size_t size) override { return std::min(left, size); }
  void passed(std::size_t octets) noexcept override { left -= octets; }
  std::size_t left = 0;
};

TEST_F(RelayTest, SendsOnlyTheOctetsThatThePacerAdmits) {
  for (const auto in : {Framing::Length, Framing::Chunked}) {
    open(in, Framing::Length, 8);
    came_with_the_head(in == Framing::Length ? "helloabc" : "5\r\nhello\r\n3\r\nabc\r\n0\r\n\r\n");
    out = "HEAD";
    Trickle pacer;
    Witness witness;
    framed.emplace(*sink, Framing::Length, out);
    relay.emplace(*body, *framed, &witness, nullptr, &pacer);
    EXPECT_EQ(relay->advance(), Need::Pace);
    EXPECT_EQ(relay->advance(), Need::Pace) << "the pacer is asked again";
    pacer.left = 2;
    EXPECT_EQ(relay->advance(), Need::Pace);
    EXPECT_EQ(witness.seen, "he");
    pacer.left = 6;
    EXPECT_EQ(relay->advance(), Need::Nothing);
    EXPECT_EQ(witness.seen, "helloabc");
    EXPECT_EQ(received(), "HEADhelloabc");
    EXPECT_EQ(body->received(), 8U);
  }
}

TEST_F(RelayTest, PacerIsChargedOnlyForOctetsThatTheGateAdmits) {
  open(Framing::Length, Framing::Length, 8);
  came_with_the_head("helloabc");
  Trickle pacer;
  pacer.left = 6;
  Allowance gate;
  gate.left = 3;
  Witness witness;
  framed.emplace(*sink, Framing::Length, out);
  relay.emplace(*body, *framed, &witness, &gate, &pacer);
  EXPECT_EQ(relay->advance(), Need::Gate);
  EXPECT_EQ(witness.seen, "hel");
  EXPECT_EQ(pacer.left, 3U);
  gate.left = 5;
  EXPECT_EQ(relay->advance(), Need::Pace);
  EXPECT_EQ(witness.seen, "helloa");
  EXPECT_EQ(gate.left, 2U) << "the gate has counted nothing that was held back";
  pacer.left = 2;
  EXPECT_EQ(relay->advance(), Need::Nothing);
}

TEST_F(RelayTest, ObserverIsNotToldThatATruncatedBodyIsComplete) {
  open(Framing::Length, Framing::Length, 10);
  Witness witness;
  framed.emplace(*sink, Framing::Length, out);
  relay.emplace(*body, *framed, &witness);
  send_in_pieces(sender.number(), "12345", 1, true);
  EXPECT_EQ(relay_to_end(), Need::Source);
  EXPECT_EQ(witness.seen, "12345");
  EXPECT_EQ(witness.completed, 0);
}

}  // namespace
}  // namespace weir::proxy
