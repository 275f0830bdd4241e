// Tests weir's TLS stream against OpenSSL's own client and server.
#include "unit/net/tls.hpp"

#include "weir/net/idle_records.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/tls_client.hpp"

#include <deque>
#include <future>
#include <optional>
#include <random>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <malloc.h>

namespace weir::net {
namespace {

Task<ErrorCode> read_once(Stream& stream, std::string& got, std::size_t most) {
  std::string piece(most, '\0');
  ErrorCode ec;
  const auto count = co_await stream.read_some(piece.data(), piece.size(), ec);
  got.append(piece, 0, count);
  co_return ec;
}

Task<ErrorCode> read_until(Stream& stream, std::string& got, std::size_t size) {
  while (got.size() < size) {
    const auto ec = co_await read_once(stream, got, 10'000);
    if (ec) co_return ec;
  }
  co_return ErrorCode{};
}

std::string pseudo_random_bytes(std::size_t size) {
  std::mt19937 random(7);
  std::string bytes(size, '\0');
  for (auto& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class TlsStream : public ::testing::Test {
 protected:
  TlsStream() { open(TlsVersion::Tls12); }

  void open(TlsVersion least) { open(certificates.settings(least)); }
  void open(const TlsSettings& settings) {
    tls = make_tls_context(settings).value();
    auto made = socket_pair();
    theirs = std::move(made.theirs);
    stream.emplace(context.get_executor(), made.ours, tls.get());
  }
  // Runs the handshakes of weir and of the client. Returns the client's result.
  bool shake_hands(TlsClient& client) {
    auto other = std::async(std::launch::async, [&] { return client.handshake(); });
    const auto ec = run(context, stream->handshake());
    if (ec) theirs_shutdown();
    return other.get() && !ec;
  }
  std::string chosen_of(std::string_view offered, const Protocols& protocols);
  void theirs_shutdown() { ::shutdown(theirs.number(), SHUT_RDWR); }

  Certificates certificates;
  TlsContext tls;
  asio::io_context context{1};
  Descriptor theirs;
  std::optional<Stream> stream;
};

// An SSL object takes at least 20 KiB, so weir makes it only when the client sends something.
TEST_F(TlsStream, ClientThatSendsNothingTakesLittleMemory) {
  constexpr std::size_t kClients = 32;
  std::deque<Pair> pairs;
  for (std::size_t i = 0; i < kClients; ++i) pairs.push_back(socket_pair());
  const auto before = ::mallinfo2().uordblks;
  std::deque<Stream> silent;
  for (const auto& pair : pairs) {
    bool wants_room = false;
    auto& one = silent.emplace_back(context.get_executor(), pair.ours, tls.get());
    EXPECT_TRUE(one.is_tls());
    EXPECT_EQ(one.try_handshake(wants_room), asio::error::would_block);
  }
  EXPECT_LT(::mallinfo2().uordblks - before, kClients * std::size_t{2'000});
}

TEST_F(TlsStream, DetectsAClientThatLeavesWithoutCloseNotify) {
  theirs_shutdown();
  EXPECT_EQ(run(context, stream->handshake()), asio::error::eof);
}

TEST_F(TlsStream, SupportsTls12AndTls13) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    open(TlsVersion::Tls12);
    TlsClient client(theirs.number(), version);
    ASSERT_TRUE(shake_hands(client)) << version;
    EXPECT_EQ(SSL_version(client.ssl()), version);
    client.send("ping");
    std::string got;
    EXPECT_FALSE(run(context, read_until(*stream, got, 4)));
    EXPECT_EQ(got, "ping");
    ErrorCode ec;
    EXPECT_EQ(stream->try_write("po", "ng", ec), 4U);
    EXPECT_EQ(client.receive(4), "pong");
  }
}

// For TLS 1.2 clients without tickets, OpenSSL would store sessions. weir resumes sessions by ticket only.
TEST_F(TlsStream, NoTlsSessionIsStoredInMemory) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    open(TlsVersion::Tls12);
    TlsClient client(theirs.number(), version);
    SSL_set_options(client.ssl(), SSL_OP_NO_TICKET);
    ASSERT_TRUE(shake_hands(client)) << version;
    EXPECT_EQ(SSL_CTX_sess_number(tls.get()), 0);
  }
}

// The connection must fail if SNI cannot carry the name. Otherwise the server could answer for another host.
TEST_F(TlsStream, RejectsAServerNameThatIsTooLongForSni) {
  const auto ours = make_tls_client_context({.verify = false}).value();
  const std::string longest(255, 'a'), longer(256, 'a');
  EXPECT_NO_THROW(Stream(context.get_executor(), socket_pair().ours, TlsTarget{ours.get(), longest}));
  EXPECT_THROW(Stream(context.get_executor(), socket_pair().ours, TlsTarget{ours.get(), longer}),
               std::bad_alloc);
}

TEST_F(TlsStream, RejectsTlsVersionsBefore12) {
  TlsClient client(theirs.number(), TLS1_1_VERSION);
  EXPECT_FALSE(shake_hands(client));
  open(TlsVersion::Tls13);
  TlsClient newer(theirs.number(), TLS1_2_VERSION);
  EXPECT_FALSE(shake_hands(newer));
}

// Offers the protocols in `offered`, each preceded by its length. Returns the protocol that the server chose;
// "none" if the server refused the client.
std::string TlsStream::chosen_of(std::string_view offered, const Protocols& protocols) {
  auto settings = certificates.settings();
  settings.protocols = protocols;
  open(settings);
  TlsClient client(theirs.number());
  if (!offered.empty())
    SSL_set_alpn_protos(client.ssl(), reinterpret_cast<const unsigned char*>(offered.data()),
                        static_cast<unsigned>(offered.size()));
  if (!shake_hands(client)) return "none";
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(client.ssl(), &name, &size);
  EXPECT_EQ(stream->protocol(), std::string_view(reinterpret_cast<const char*>(name), size));
  return std::string(stream->protocol());
}

TEST_F(TlsStream, AlpnChoosesTheProtocolThatWeirPrefersOrRejectsTheClient) {
  constexpr std::string_view kBoth = "\x08http/1.1\x02h2", kHttp2 = "\x02h2", kOther = "\x06spdy/3";
  const Protocols http1{}, http2{.http1 = false, .h2 = true}, both{.h2 = true};
  EXPECT_EQ(chosen_of(kBoth, http1), "http/1.1");
  EXPECT_EQ(chosen_of(kBoth, http2), "h2");
  EXPECT_EQ(chosen_of(kBoth, both), "h2") << "weir's order counts, not the client's";
  EXPECT_EQ(chosen_of("\x08http/1.0", http1), "http/1.0");
  EXPECT_EQ(chosen_of("\x08http/1.0", both), "http/1.0");
  EXPECT_EQ(chosen_of("\x08http/1.1", http2), "none");
  EXPECT_EQ(chosen_of(kHttp2, http1), "none");
  for (const auto& protocols : {http1, http2, both}) {
    EXPECT_EQ(chosen_of(kOther, protocols), "none");
    EXPECT_EQ(chosen_of("", protocols), "") << "the client does not know ALPN";
  }
}

TEST_F(TlsStream, TransfersManyBytesInBothDirections) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  const auto bytes = pseudo_random_bytes(5 << 20);
  const auto view = std::string_view(bytes);
  for (const std::size_t split : {0UL, 1UL, 2UL << 20}) {
    auto reader = std::async(std::launch::async, [&] { return client.receive(bytes.size()); });
    EXPECT_FALSE(run(context, stream->write(view.substr(0, split), view.substr(split))));
    EXPECT_TRUE(reader.get() == bytes) << split;
  }
  auto writer = std::async(std::launch::async, [&] { client.send(bytes); });
  std::string got;
  EXPECT_FALSE(run(context, read_until(*stream, got, bytes.size())));
  writer.get();
  EXPECT_TRUE(got == bytes);
}

TEST_F(TlsStream, WriteIntoAFullSocketBufferIsNoErrorAndItsRestCanBeSentLater) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  const auto bytes = pseudo_random_bytes(2 << 20);
  ErrorCode ec;
  const auto sent = stream->try_write(bytes, {}, ec);
  EXPECT_FALSE(ec);
  EXPECT_LT(sent, bytes.size());
  auto reader = std::async(std::launch::async, [&] { return client.receive(bytes.size()); });
  EXPECT_FALSE(run(context, stream->write_rest(std::string_view(bytes).substr(sent))));
  EXPECT_TRUE(reader.get() == bytes);
}

// Writes `text` again and again until the socket's buffer is full. Returns the texts that were sent
// completely. OpenSSL still holds a part of one more text.
std::string fill(Stream& stream, std::string_view text) {
  std::string taken;
  ErrorCode ec;
  while (stream.try_write(text, {}, ec) == text.size()) taken += text;
  EXPECT_FALSE(ec);
  return taken;
}

// OpenSSL first sends the record that it holds. If weir wrote another text meanwhile, OpenSSL would treat the
// octets of this record as a part of that text.
TEST_F(TlsStream, RejectsANewWriteWhileOpenSslHoldsAPartialRecord) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    open(TlsVersion::Tls12);
    TlsClient client(theirs.number(), version);
    ASSERT_TRUE(shake_hands(client)) << version;
    const auto taken = fill(*stream, "one text of several. ");
    ASSERT_TRUE(stream->owes_write())
        << "no byte of the last text was sent, and OpenSSL holds a record of it";
    ErrorCode ec;
    EXPECT_EQ(stream->try_write("another text, which is longer than that", {}, ec), 0U);
    EXPECT_EQ(ec, StreamError::WriteOwed);
    EXPECT_EQ(run(context, stream->write("another")), StreamError::WriteOwed);
    EXPECT_EQ(client.receive(taken.size()), taken);
    EXPECT_EQ(stream->try_write("another text, also when there is room", {}, ec), 0U);
    EXPECT_EQ(ec, StreamError::WriteOwed);
    EXPECT_FALSE(run(context, stream->write_rest("one text of several. And more of it.")));
    EXPECT_FALSE(stream->owes_write());
    EXPECT_EQ(stream->try_write("Another.", {}, ec), 8U);
    EXPECT_EQ(client.receive(44), "one text of several. And more of it.Another.");
  }
}

TEST_F(TlsStream, CancelledWriteIsPartialUntilItsRestIsSent) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  (void)fill(*stream, "text. ");
  ASSERT_TRUE(stream->owes_write());
  Running writing(context, stream->write_rest("text. "));
  context.poll();
  stream->cancel();
  EXPECT_EQ(writing.result(), asio::error::operation_aborted);
  EXPECT_TRUE(stream->owes_write());
}

TEST_F(TlsStream, SendsNoCloseNotifyAfterAPartialWrite) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  const auto taken = fill(*stream, "a text. ");
  ASSERT_TRUE(stream->owes_write());
  stream->shutdown_send();
  EXPECT_EQ(client.receive(), taken);
  EXPECT_NE(client.last_error(), SSL_ERROR_ZERO_RETURN);
}

TEST_F(TlsStream, SendsCloseNotifyAtTheEnd) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  ErrorCode ec;
  EXPECT_EQ(stream->try_write("bye", {}, ec), 3U);
  stream->shutdown_send();
  EXPECT_EQ(client.receive(), "bye");
  EXPECT_EQ(client.last_error(), SSL_ERROR_ZERO_RETURN);
}

TEST_F(TlsStream, ReadsTheEndOfStreamWithOrWithoutCloseNotify) {
  for (const bool polite : {true, false}) {
    open(TlsVersion::Tls12);
    TlsClient client(theirs.number());
    ASSERT_TRUE(shake_hands(client));
    client.send("last");
    if (polite) SSL_shutdown(client.ssl());
    ::shutdown(theirs.number(), SHUT_WR);
    std::string got;
    EXPECT_EQ(run(context, read_until(*stream, got, 100)), asio::error::eof) << polite;
    EXPECT_EQ(got, "last");
    EXPECT_TRUE(stream->peer_left());
  }
}

TEST_F(TlsStream, ReportsBytesBufferedByOpenSslAsPending) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  EXPECT_FALSE(stream->has_pending());
  client.send("hello");
  std::string got;
  EXPECT_FALSE(run(context, read_once(*stream, got, 2)));
  EXPECT_TRUE(stream->has_pending());
  EXPECT_FALSE(run(context, read_once(*stream, got, 10)));
  EXPECT_EQ(got, "hello");
  EXPECT_FALSE(stream->has_pending());
}

TEST_F(TlsStream, OneReadReturnsAllRecordsThatHaveArrived) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  std::string sent;
  for (int record = 0; record < 20; ++record) {
    const std::string piece(1000, static_cast<char>('a' + record));
    client.send(piece);
    sent += piece;
  }
  std::string got;
  EXPECT_FALSE(run(context, read_once(*stream, got, 30'000)));
  EXPECT_TRUE(got == sent) << got.size();
}

TEST_F(TlsStream, ErrorAfterARecordIsReportedByTheNextRead) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  client.send("whole");
  send_all(theirs.number(), "no record of TLS");
  std::string got;
  EXPECT_FALSE(run(context, read_once(*stream, got, 100)));
  EXPECT_EQ(got, "whole");
  EXPECT_TRUE(stream->has_pending());
  const auto ec = run(context, read_once(*stream, got, 100));
  EXPECT_EQ(ec.category(), asio::error::get_ssl_category()) << ec.message();
}

TEST_F(TlsStream, ReceivesDataAfterItsBuffersWereReleased) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  std::string got;
  for (int i = 0; i < 3; ++i) {
    stream->trim();
    Running waiting(context, until_readable(*stream));
    client.send("x");
    EXPECT_FALSE(waiting.result());
    EXPECT_FALSE(run(context, read_once(*stream, got, 10)));
  }
  EXPECT_EQ(got, "xxx");
}

TEST_F(TlsStream, HandshakeFailsOnPlainTextOrAnEarlyEndOfStream) {
  send_all(theirs.number(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(run(context, stream->handshake()));
  open(TlsVersion::Tls12);
  send_all(theirs.number(), std::string_view("\x16\x03\x01\x02", 4));
  theirs.close();
  EXPECT_TRUE(run(context, stream->handshake()));
}

// The certificates are larger than the socket's buffer.
TEST_F(TlsStream, HandshakeContinuesOnceTheClientReads) {
  for (int i = 0; i < 200; ++i)
    ASSERT_EQ(SSL_CTX_add1_chain_cert(tls.get(), SSL_CTX_get0_certificate(tls.get())), 1);
  const int least = 1;
  ::setsockopt(stream->native_handle(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  TlsClient client(theirs.number());
  ::fcntl(theirs.number(), F_SETFL, O_NONBLOCK);
  EXPECT_FALSE(client.handshake()) << "the client has sent only its first message";
  ::fcntl(theirs.number(), F_SETFL, 0);
  context.poll();
  bool wants_room = false;
  EXPECT_EQ(stream->try_handshake(wants_room), asio::error::would_block);
  EXPECT_TRUE(wants_room);
  EXPECT_TRUE(shake_hands(client));
}

TEST_F(TlsStream, CancelEndsTheHandshake) {
  Running shaking(context, stream->handshake());
  context.poll();
  ASSERT_FALSE(shaking.done());
  stream->cancel();
  EXPECT_EQ(shaking.result(), asio::error::operation_aborted);
}

// The system may give the number of a closed descriptor to the next connection. A late write would send its
// bytes to that connection.
TEST_F(TlsStream, WriteAfterCloseSendsNothing) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  const int number = stream->native_handle();
  stream->close();
  auto next = socket_pair();
  const Descriptor ours(next.ours);
  if (next.ours != number) ::dup2(next.ours, number);
  stream->shutdown_send();
  ErrorCode ec;
  EXPECT_EQ(stream->try_write("secret", {}, ec), 0U);
  EXPECT_TRUE(ec);
  char byte = 0;
  EXPECT_LT(::recv(next.theirs.number(), &byte, 1, MSG_DONTWAIT), 0)
      << "bytes were sent on another connection";
  if (next.ours != number) ::close(number);
}

// Sends `times` TLS records without data, then `data`.
void send_idly(TlsClient& client, int times, std::string_view data) {
  for (int i = 0; i < times; ++i) {
    SSL_key_update(client.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
    SSL_do_handshake(client.ssl());
  }
  client.send(data);
}

TEST_F(TlsStream, TooManyKeyUpdatesCloseTheConnection) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  send_idly(client, 200, "data");
  std::string got;
  EXPECT_EQ(run(context, read_once(*stream, got, 100)), asio::error::connection_aborted);
  EXPECT_TRUE(stream->had_too_many_records());
  EXPECT_EQ(got, "");
  EXPECT_TRUE(stream->has_pending()) << "bytes behind the records were not read";
}

TEST_F(TlsStream, AcceptsAFewKeyUpdates) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  std::string got;
  send_idly(client, IdleRecords::kMost, "a");
  for (int i = 0; i < 50; ++i) send_idly(client, 1, "b");
  EXPECT_FALSE(run(context, read_until(*stream, got, 51)));
  EXPECT_FALSE(stream->had_too_many_records());
  send_idly(client, 2, "c");
  EXPECT_EQ(run(context, read_until(*stream, got, 52)), asio::error::connection_aborted)
      << "a data record makes up for only one empty record";
}

TEST_F(TlsStream, RecordThatIsReadInPiecesPermitsNoMoreEmptyRecordsThanOtherRecords) {
  TlsClient client(theirs.number());
  ASSERT_TRUE(shake_hands(client));
  std::string got;
  client.send(std::string(200, 'a'));
  for (int i = 0; i < 200; ++i) EXPECT_FALSE(run(context, read_once(*stream, got, 1)));
  send_idly(client, IdleRecords::kMost + 1, "b");
  EXPECT_EQ(run(context, read_once(*stream, got, 1)), asio::error::connection_aborted);
}

// Returns the beginning of a hostile ClientHello in records of one octet. Each record takes 6 octets.
std::string tiny_records(std::size_t count) {
  constexpr std::string_view kHello("\x01\x00\xff\xff", 4);
  std::string records;
  for (std::size_t i = 0; i < count; ++i)
    records.append("\x16\x03\x01\x00\x01", 5).append(1, i < kHello.size() ? kHello[i] : '\0');
  return records;
}

// A hostile ClientHello may come in records of one octet. weir must not process all of them at once.
TEST_F(TlsStream, HandshakeInTinyRecordsPausesSoThatOtherTasksRun) {
  send_all(theirs.number(), tiny_records(14'000));
  EXPECT_EQ(run(context, stream->handshake()), asio::error::in_progress);
  EXPECT_TRUE(stream->has_pending() || !stream->is_quiet()) << "part of the handshake is still unread";
}

// The reactor reports only input that is still in the socket. The input here takes four reads, and the last
// read empties the socket.
TEST_F(TlsStream, PausedHandshakeHasProcessedAllInputThatItRead) {
  send_all(theirs.number(), tiny_records(8'300));
  context.poll();
  bool wants_room = true;
  EXPECT_EQ(stream->try_handshake(wants_room), asio::error::in_progress);
  EXPECT_FALSE(wants_room);
  EXPECT_FALSE(stream->has_pending());
}

}  // namespace
}  // namespace weir::net
