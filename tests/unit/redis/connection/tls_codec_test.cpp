#include "redis/connection/tls.hpp"
#include "unit/net/tls.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

// The server's end of a TLS connection, in memory.
class Peer {
 public:
  explicit Peer(SSL_CTX* context) : ssl_(SSL_new(context), SSL_free) {
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(ssl_.get());
  }
  void receive(std::string& sealed) {
    BIO_write(SSL_get_rbio(ssl_.get()), sealed.data(), static_cast<int>(sealed.size()));
    sealed.clear();
    SSL_do_handshake(ssl_.get());
  }
  void update_keys(unsigned times) {
    for (unsigned i = 0; i < times; ++i) {
      SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
      SSL_do_handshake(ssl_.get());
    }
  }
  void say(std::string_view text) { SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())); }
  // Returns the bytes that the peer wants to send.
  std::string sealed() {
    std::string all;
    std::array<char, 4096> piece{};
    for (int n = 0; (n = BIO_read(SSL_get_wbio(ssl_.get()), piece.data(), piece.size())) > 0;)
      all.append(piece.data(), static_cast<std::size_t>(n));
    return all;
  }

 private:
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
};

class TlsCodecTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto handshake = codec.handshake(); handshake != TlsCodec::HandshakeResult::Done;
         handshake = codec.handshake()) {
      ASSERT_EQ(handshake, TlsCodec::HandshakeResult::More) << codec.why();
      peer.receive(codec.sealed());
      codec.feed(peer.sealed());
    }
    peer.receive(codec.sealed());
  }
  std::string open() {
    codec.feed(peer.sealed());
    std::array<char, 100> text{};
    return {text.data(), codec.open(text.data(), text.size(), ended)};
  }

  net::Certificates certificates;
  net::TlsContext context = net::make_tls_context(certificates.settings()).value();
  Peer peer{context.get()};
  TlsClient client{{.ca = {}, .cert = {}, .key = {}, .server_name = {}, .verify = false}};
  TlsCodec codec{client.begin("localhost").value()};
  bool ended = false;
};

TEST_F(TlsCodecTest, ReadsDataAfterASessionTicketAndAKeyUpdate) {
  peer.update_keys(3);
  peer.say("+PONG");
  EXPECT_EQ(open(), "+PONG");
  EXPECT_EQ(open(), "");
  EXPECT_FALSE(ended);
}

// A TLS record without data costs the worker as much time as a request, so a peer must not send many of them.
TEST_F(TlsCodecTest, TooManyRecordsWithoutDataCloseTheConnection) {
  peer.update_keys(1'000);
  peer.say("+PONG");
  EXPECT_EQ(open(), "");
  EXPECT_TRUE(ended);
  EXPECT_EQ(codec.why(), "it sends empty TLS records");
}

// Regression, found by tests/fuzz/redis_tls_fuzz.cpp: why() was empty if the peer's answer was too short for
// OpenSSL to recognise its protocol.
TEST(NewCodec, HandshakeFailsWithAReasonIfThePeerSendsOneOctetThatIsNotTls) {
  TlsClient client{{.ca = {}, .cert = {}, .key = {}, .server_name = {}, .verify = false}};
  TlsCodec codec{client.begin("localhost").value()};
  ASSERT_EQ(codec.handshake(), TlsCodec::HandshakeResult::More);
  codec.feed("-");
  EXPECT_EQ(codec.handshake(), TlsCodec::HandshakeResult::Failed);
  EXPECT_EQ(codec.why(), "the peer does not speak TLS");
}

}  // namespace
}  // namespace weir::redis
