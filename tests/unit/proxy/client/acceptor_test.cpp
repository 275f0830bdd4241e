#include "weir/proxy/acceptor.hpp"

#include "unit/proxy/lone_worker.hpp"

#include <utility>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::proxy {
namespace {

AcceptorSettings with_tls(bool tls) {
  return {.tls = net::TlsContext(tls ? SSL_CTX_new(TLS_server_method()) : nullptr)};
}

// Returns true if the kernel holds connections of the listening socket back until the client sends.
bool is_deferred(int listening) {
  int seconds = 0;
  socklen_t size = sizeof seconds;
  EXPECT_EQ(::getsockopt(listening, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, &size), 0);
  return seconds != 0;
}

struct AcceptorTest : testing::Test, LoneWorker {
  AcceptorTest() : LoneWorker(Configuration{}) {
    auto socket = net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0"));
    auto listening = std::move(*socket).into_acceptor(context.get_executor());
    descriptor = listening.native_handle();
    acceptor.emplace(worker, std::move(listening), with_tls(false), [](const std::string&) {});
  }
  ~AcceptorTest() override {
    acceptor->close();
    context.restart();
    while (context.poll_one() != 0) {
    }
    net::Reactor::of(context.get_executor()).end_tasks();
  }
  int descriptor = -1;
  std::optional<Acceptor> acceptor;
};

TEST_F(AcceptorTest, KernelHoldsBackTlsClientsButNotPlainOnes) {
  acceptor->open();
  EXPECT_FALSE(is_deferred(descriptor));
  acceptor->renew(with_tls(true));
  EXPECT_TRUE(is_deferred(descriptor));
  acceptor->renew(with_tls(false));
  EXPECT_FALSE(is_deferred(descriptor));
}

// In an upgrade, the new process shares the listening socket.
TEST_F(AcceptorTest, FailedUpgradeDoesNotChangeWhichClientsTheKernelHoldsBack) {
  acceptor->open();
  {
    auto shared = net::AcceptorSocket(context.get_executor(), {AF_INET, IPPROTO_TCP}, ::dup(descriptor));
    LoneWorker starting{Configuration{}};
    Acceptor unopened(starting.worker, std::move(shared), with_tls(true), [](const std::string&) {});
    EXPECT_FALSE(is_deferred(descriptor));
    unopened.close();
  }
  acceptor->hold();
  net::AcceptorSocket opened(context.get_executor(), {AF_INET, IPPROTO_TCP}, ::dup(descriptor));
  net::defer_accept(opened, true);
  acceptor->resume();
  EXPECT_FALSE(is_deferred(descriptor));
}

}  // namespace
}  // namespace weir::proxy
