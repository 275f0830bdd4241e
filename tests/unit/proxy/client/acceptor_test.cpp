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

TEST(AcceptorTest, KernelHoldsBackTlsClientsButNotPlainOnes) {
  LoneWorker fixture{Configuration{}};
  auto socket = net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0"));
  ASSERT_TRUE(socket);
  auto listening = std::move(*socket).into_acceptor(fixture.context.get_executor());
  const int descriptor = listening.native_handle();
  Acceptor acceptor(fixture.worker, std::move(listening), with_tls(false), [](const std::string&) {});
  EXPECT_FALSE(is_deferred(descriptor));
  acceptor.renew(with_tls(true));
  EXPECT_TRUE(is_deferred(descriptor));
  acceptor.renew(with_tls(false));
  EXPECT_FALSE(is_deferred(descriptor));
}

}  // namespace
}  // namespace weir::proxy
