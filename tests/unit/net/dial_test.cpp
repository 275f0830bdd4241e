// Tests connections to servers that have several addresses, some of which do not respond.
#include "weir/net/dial.hpp"

#include "unit/net/tls.hpp"

#include "weir/net/tls_client.hpp"

#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>

namespace weir::net {
namespace {

using namespace std::chrono_literals;

// An address with its own port, on which the test listens. A silent address has a full backlog, so a client
// gets no answer.
class Address {
 public:
  explicit Address(int backlog = 16) : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::bind(listening_.number(), reinterpret_cast<sockaddr*>(&here), sizeof here);
    ::listen(listening_.number(), backlog);
  }
  static Address silent() {
    Address full(0);
    const auto where = full.endpoint();
    for (int i = 0; i < 4; ++i) {
      full.waiting_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      ::connect(full.waiting_.back().number(), where.data(), static_cast<socklen_t>(where.size()));
    }
    return full;
  }
  [[nodiscard]] RawEndpoint endpoint() const { return local_endpoint(listening_.number()); }
  // Accepts a connection. Returns an invalid descriptor if no client connects.
  [[nodiscard]] Descriptor accept() const {
    pollfd coming{listening_.number(), POLLIN, 0};
    if (::poll(&coming, 1, 20'000) != 1) return Descriptor(-1);
    return Descriptor(::accept(listening_.number(), nullptr, nullptr));
  }
  void close() noexcept { listening_.close(); }

 private:
  Descriptor listening_;
  std::vector<Descriptor> waiting_;
};

class Dialling : public ::testing::Test {
 protected:
  // Connects to one of the addresses and returns the error. `patience` determines how long the dial tries an
  // address alone; it does not limit the whole call.
  ErrorCode dial(const std::vector<RawEndpoint>& addresses, std::size_t first = 0,
                 std::optional<TlsTarget> tls = {}) {
    const Dial::Target target{addresses, first, {}, tls};
    Dial dial(context.get_executor(), watchdog, target, 2s);
    const auto ec = run(context, dial.connect());
    number = dial.address();
    stream = dial.take();
    fault = dial.fault();
    return ec;
  }
  [[nodiscard]] RawEndpoint peer() const { return remote_endpoint(stream->native_handle()); }

  asio::io_context context{1};
  Watchdog watchdog{context.get_executor()};
  std::unique_ptr<Stream> stream;
  std::size_t number = 0;
  std::string fault;
};

// The watchdog does not tick in this test, so no deadline passes. Each attempt starts because the previous
// one has failed.
TEST_F(Dialling, TriesAllAddressesInTurnBeginningWithTheGivenAddress) {
  const Address one;
  Address gone;
  const std::vector<RawEndpoint> addresses{one.endpoint(), gone.endpoint(), one.endpoint()};
  gone.close();
  for (const std::size_t first : {0U, 2U}) {
    EXPECT_FALSE(dial(addresses, first));
    EXPECT_EQ(number, first);
    EXPECT_EQ(peer(), addresses[first]);
  }
  EXPECT_FALSE(dial(addresses, 1)) << "a refused connect starts the next attempt at once";
  EXPECT_EQ(number, 2U);
  EXPECT_FALSE(dial({addresses[1], addresses[1], addresses[0]}, 1));
  EXPECT_EQ(number, 2U);
}

TEST_F(Dialling, ReturnsTheLastErrorIfAllAddressesFail) {
  Address gone;
  const auto endpoint = gone.endpoint();
  gone.close();
  EXPECT_EQ(dial({endpoint}), asio::error::connection_refused);
  EXPECT_EQ(stream, nullptr);
  EXPECT_EQ(dial({endpoint, endpoint, endpoint, endpoint, endpoint, endpoint}),
            asio::error::connection_refused);
}

TEST_F(Dialling, SilentAddressDelaysTheAttemptAtTheNextAddressOnlyBriefly) {
  watchdog.start();
  const auto silent = Address::silent();
  const Address good;
  EXPECT_FALSE(dial({silent.endpoint(), good.endpoint()}));
  EXPECT_EQ(number, 1U);
  EXPECT_EQ(peer(), good.endpoint());
}

TEST_F(Dialling, OldestAttemptIsReplacedIfTooManyAddressesAreSilent) {
  watchdog.start();
  std::vector<Address> silent;
  std::vector<RawEndpoint> addresses;
  for (std::size_t i = 0; i < Dial::kAbreast + 1; ++i) {
    silent.push_back(Address::silent());
    addresses.push_back(silent.back().endpoint());
  }
  const Address good;
  addresses.push_back(good.endpoint());
  EXPECT_FALSE(dial(addresses));
  EXPECT_EQ(number, Dial::kAbreast + 1);
}

// The kernel repeats an unanswered SYN after a second. By then the test has made room in the backlog of the
// slow address.
TEST_F(Dialling, SlowAttemptCanStillSucceedAfterTheNextAttemptWasStarted) {
  watchdog.start();
  const auto slow = Address::silent();
  const auto silent = Address::silent();
  const std::vector<RawEndpoint> addresses{slow.endpoint(), silent.endpoint()};
  const Dial::Target target{addresses};
  Dial dial(context.get_executor(), watchdog, target, 2s);
  Running dialling(context, dial.connect());
  context.run_for(600ms);
  for (int i = 0; i < 2; ++i) (void)slow.accept();
  EXPECT_FALSE(dialling.result());
  EXPECT_EQ(dial.address(), 0U);
}

TEST_F(Dialling, AttemptSucceedsOnlyAfterTheTlsHandshake) {
  watchdog.start();
  const Address mute;  // the kernel accepts the connection, but the server sends nothing
  const Address good;
  const Certificates certificates;
  const auto server = make_tls_context(certificates.settings()).value();
  auto other = std::async(std::launch::async, [&] {
    const auto theirs = good.accept();
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(server.get()), SSL_free);
    SSL_set_fd(ssl.get(), theirs.number());
    return SSL_accept(ssl.get());
  });
  const auto believing = make_tls_client_context({.verify = false}).value();
  const std::string name = "api.test";
  EXPECT_FALSE(dial({mute.endpoint(), good.endpoint()}, 0, TlsTarget{believing.get(), name}));
  EXPECT_EQ(number, 1U);
  EXPECT_EQ(fault, "");
  EXPECT_EQ(other.get(), 1);
}

TEST_F(Dialling, NewerAttemptsDoNotReplaceAnAttemptInItsTlsHandshake) {
  watchdog.start();
  const Address slow;
  std::vector<Address> silent;
  std::vector<RawEndpoint> addresses{slow.endpoint()};
  for (std::size_t i = 0; i < Dial::kAbreast + 1; ++i) {
    silent.push_back(Address::silent());
    addresses.push_back(silent.back().endpoint());
  }
  const Certificates certificates;
  const auto server = make_tls_context(certificates.settings()).value();
  auto other = std::async(std::launch::async, [&] {
    const auto theirs = slow.accept();
    std::this_thread::sleep_for(1500ms);  // waits until the attempts to all other addresses have begun
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(server.get()), SSL_free);
    SSL_set_fd(ssl.get(), theirs.number());
    return SSL_accept(ssl.get());
  });
  const auto believing = make_tls_client_context({.verify = false}).value();
  const std::string name = "api.test";
  EXPECT_FALSE(dial(addresses, 0, TlsTarget{believing.get(), name}));
  EXPECT_EQ(number, 0U);
  EXPECT_EQ(other.get(), 1);
}

TEST_F(Dialling, AfterATimeoutTheNextDialBeginsWithAnUntriedAddress) {
  watchdog.start();
  const auto silent = Address::silent();
  const std::vector<RawEndpoint> addresses{silent.endpoint(), silent.endpoint(), silent.endpoint()};
  const Dial::Target target{addresses, 1};
  {
    Dial dial(context.get_executor(), watchdog, target, 2s);
    Running dialling(context, dial.connect());
    context.poll();
    dial.cancel();
    EXPECT_EQ(dialling.result(), asio::error::operation_aborted);
    EXPECT_EQ(dial.next(), 1U) << "the address was not tried for its full time";
  }
  Dial dial(context.get_executor(), watchdog, target, 2s);
  Running dialling(context, dial.connect());
  ASSERT_TRUE(turn_until(context, [&] { return dial.next() == 0; }))
      << "the attempt to the last address, number 2, has begun";
  dial.cancel();
  EXPECT_EQ(dialling.result(), asio::error::operation_aborted);
  EXPECT_EQ(dial.next(), 0U);
}

TEST_F(Dialling, FailedHandshakeStartsTheNextAttemptAndReportsTheReason) {
  const Address foreign;
  auto other = std::async(std::launch::async, [&] {
    for (int i = 0; i < 2; ++i) {
      const auto theirs = foreign.accept();
      send_all(theirs.number(), "HTTP/1.1 400 Bad Request\r\n\r\n");
      (void)receive(theirs.number());
    }
  });
  const auto believing = make_tls_client_context({.verify = false}).value();
  const std::string name = "api.test";
  EXPECT_TRUE(dial({foreign.endpoint(), foreign.endpoint()}, 0, TlsTarget{believing.get(), name}));
  EXPECT_EQ(stream, nullptr);
  EXPECT_TRUE(fault.starts_with("its TLS handshake failed: ")) << fault;
  other.get();
}

// The server's certificates take more reads than weir makes in one step of a handshake.
TEST_F(Dialling, HandshakeWithManyCertificatesSucceeds) {
  const Address good;
  const Certificates certificates;
  const auto server = make_tls_context(certificates.settings()).value();
  const auto one = static_cast<std::size_t>(i2d_X509(SSL_CTX_get0_certificate(server.get()), nullptr));
  for (std::size_t size = 0; size < 80'000; size += one)
    ASSERT_EQ(SSL_CTX_add1_chain_cert(server.get(), SSL_CTX_get0_certificate(server.get())), 1);
  auto other = std::async(std::launch::async, [&] {
    const auto theirs = good.accept();
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(server.get()), SSL_free);
    SSL_set_fd(ssl.get(), theirs.number());
    return SSL_accept(ssl.get());
  });
  const auto believing = make_tls_client_context({.verify = false}).value();
  const std::string name = "api.test";
  EXPECT_FALSE(dial({good.endpoint()}, 0, TlsTarget{believing.get(), name}));
  EXPECT_EQ(fault, "");
  EXPECT_EQ(other.get(), 1);
}

TEST_F(Dialling, CancelStopsADialAtAnyStage) {
  const auto silent = Address::silent();
  const std::vector<RawEndpoint> addresses{silent.endpoint(), silent.endpoint()};
  for (const bool later : {false, true}) {
    const Dial::Target target{addresses};
    Dial dial(context.get_executor(), watchdog, target, 2s);
    if (!later) dial.cancel();
    Running dialling(context, dial.connect());
    context.poll();
    EXPECT_EQ(dialling.done(), !later);
    if (later) dial.cancel();
    EXPECT_EQ(dialling.result(), asio::error::operation_aborted);
  }
}

}  // namespace
}  // namespace weir::net
