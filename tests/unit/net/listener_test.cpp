#include "weir/net/listener.hpp"

#include "unit/net/sockets.hpp"

#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include <arpa/inet.h>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

namespace weir::net {
namespace {

base::Endpoint local(std::uint16_t port = 0) {
  return {.host = "127.0.0.1", .port = port, .unix_path = {}};
}

// Connects. Returns an invalid descriptor if no process listens.
Descriptor connect_to(const base::Endpoint& address) {
  const auto endpoint = resolve(address)->front();
  Descriptor socket(::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.number(), endpoint.data(), static_cast<socklen_t>(endpoint.size())) != 0)
    socket.close();
  return socket;
}

class UnixListener : public ::testing::Test {
 protected:
  UnixListener() {
    std::string pattern = ::testing::TempDir() + "weir_listener_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    address.unix_path = directory_ + "/socket";
  }
  ~UnixListener() override { std::filesystem::remove_all(directory_); }

  base::Endpoint address;

 private:
  std::string directory_;
};

TEST(Listener, PortZeroOpensAFreePort) {
  const auto socket = ListeningSocket::open(local());
  ASSERT_TRUE(socket);
  EXPECT_NE(socket->address().port, 0);
  EXPECT_EQ(socket->address().host, "127.0.0.1");
  EXPECT_GE(connect_to(socket->address()).number(), 0);
}

TEST(Listener, ErrorNamesAnAddressInUse) {
  const auto first = ListeningSocket::open(local());
  ASSERT_TRUE(first);
  const auto second = ListeningSocket::open(first->address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message,
            "cannot listen on " + first->address().to_string() + ": Address already in use");
}

TEST(Listener, ErrorNamesAnAddressOfAnotherHost) {
  const auto socket = ListeningSocket::open({.host = "192.0.2.1", .port = 1, .unix_path = {}});
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().message.find("cannot listen on 192.0.2.1:1: "), std::string::npos);
}

TEST(Listener, NameWithoutAddressesIsAnError) {
  const auto socket = ListeningSocket::open({.host = "no such host", .port = 1, .unix_path = {}});
  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().message.find("cannot resolve \"no such host\": "), std::string::npos);
}

TEST(Listener, OpensAllAddressesOfAHostName) {
  const auto sockets = ListeningSocket::open_all({.host = "localhost", .port = 0, .unix_path = {}});
  ASSERT_TRUE(sockets) << sockets.error().message;
  const auto found = resolve({.host = "localhost", .port = 0, .unix_path = {}});
  std::set<std::string> expected, opened;
  for (const auto& each : *found)
    if (const auto host = peer_address(each).to_string(); ListeningSocket::open({host, 0, {}}))
      expected.insert(host);
  std::set<std::uint16_t> ports;
  for (const auto& socket : *sockets) {
    opened.insert(socket.bound().host);
    ports.insert(socket.bound().port);
  }
  EXPECT_EQ(opened, expected);
  EXPECT_EQ(ports.size(), 1U) << "the port of the first socket";
}

TEST(Listener, OpensARepeatedAddressOnce) {
  const auto sockets = ListeningSocket::open_all(local());
  ASSERT_TRUE(sockets);
  EXPECT_EQ(sockets->size(), 1U);
}

// weir's own sockets share the port by SO_REUSEPORT. No other socket may share the port, whether it was bound
// earlier or later, in this process or another.
TEST(Listener, PortSharedByWorkersCannotBeOpenedByAnotherProcess) {
  const auto first = ListeningSocket::open(local());
  ASSERT_TRUE(first);
  const auto second = first->again();
  const auto third = first->again();
  ASSERT_TRUE(second && third);
  EXPECT_EQ(second->address(), first->address());
  EXPECT_FALSE(ListeningSocket::open(first->address()));

  const auto child = ::fork();
  if (child == 0) ::_exit(ListeningSocket::open(first->address()) ? 1 : 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "another process shares the port";
}

TEST(Listener, OnlyOneOfTwoThreadsThatOpenAPortAtOnceSucceeds) {
  for (int round = 0; round < 300; ++round) {
    // the socket is closed at the end of this line
    const auto address = ListeningSocket::open(local())->address();
    std::barrier start(2);
    std::barrier end(2);
    std::atomic<int> opened{0};
    const auto contend = [&] {
      start.arrive_and_wait();
      const auto socket = ListeningSocket::open(address);
      if (socket) ++opened;
      end.arrive_and_wait();
    };
    std::thread other(contend);
    contend();
    other.join();
    ASSERT_LE(opened, 1) << "round " << round;
  }
}

TEST(Listener, ConnectionsAreDistributedToAllSocketsThatShareAPort) {
  asio::io_context context;
  auto first = ListeningSocket::open(local());
  ASSERT_TRUE(first);
  auto second = first->again();
  ASSERT_TRUE(second);
  const auto address = first->address();
  auto one = std::move(*first).into_acceptor(context.get_executor());
  auto other = std::move(*second).into_acceptor(context.get_executor());
  one.non_blocking(true);
  other.non_blocking(true);
  int at_one = 0;
  int at_other = 0;
  for (int i = 0; i < 200 && (at_one == 0 || at_other == 0); ++i) {
    const auto client = connect_to(address);
    ASSERT_GE(client.number(), 0);
    Socket accepted(context.get_executor());
    ErrorCode ec;
    one.accept(accepted, ec);
    if (!ec) ++at_one;
    accepted.close(ec);
    other.accept(accepted, ec);
    if (!ec) ++at_other;
  }
  EXPECT_GT(at_one, 0);
  EXPECT_GT(at_other, 0);
}

TEST(Listener, AcceptedSocketsHaveTcpNoDelay) {
  asio::io_context context;
  auto socket = ListeningSocket::open(local());
  ASSERT_TRUE(socket);
  const auto client = connect_to(socket->address());
  auto acceptor = std::move(*socket).into_acceptor(context.get_executor());
  RawEndpoint peer;
  ErrorCode ec;
  const auto accepted = accept_connection(acceptor, peer, ec);
  ASSERT_FALSE(ec);
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  ASSERT_EQ(::getsockopt(accepted.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
  EXPECT_EQ(no_delay, 1);
}

TEST(Listener, AcceptReturnsANonBlockingSocketAndItsPeer) {
  asio::io_context context;
  auto socket = ListeningSocket::open(local());
  ASSERT_TRUE(socket);
  const auto client = connect_to(socket->address());
  auto acceptor = std::move(*socket).into_acceptor(context.get_executor());
  RawEndpoint peer;
  ErrorCode ec;
  const auto accepted = accept_connection(acceptor, peer, ec);
  ASSERT_FALSE(ec);
  EXPECT_NE(::fcntl(accepted.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(accepted.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(peer_address(peer).to_string(), "127.0.0.1");
  EXPECT_EQ(peer_port(peer), peer_port(local_endpoint(client.number())));
  EXPECT_LT(accept_connection(acceptor, peer, ec).get(), 0);
  EXPECT_EQ(ec, asio::error::would_block);
}

// Returns true once a connection can be accepted; false if that takes longer than ten seconds.
bool wait_for_client(AcceptorSocket& acceptor) {
  pollfd entry{acceptor.native_handle(), POLLIN, 0};
  return ::poll(&entry, 1, 10'000) == 1;
}

TEST(Listener, DeferredClientIsAcceptedWhenItSendsOrAfterAWhile) {
  asio::io_context context;
  auto socket = ListeningSocket::open(local());
  ASSERT_TRUE(socket);
  const auto address = socket->address();
  auto acceptor = std::move(*socket).into_acceptor(context.get_executor());
  defer_accept(acceptor, true);
  RawEndpoint peer;
  ErrorCode ec;
  const auto sends = connect_to(address);
  ASSERT_EQ(::send(sends.number(), "x", 1, 0), 1);
  ASSERT_TRUE(wait_for_client(acceptor));
  const auto first = accept_connection(acceptor, peer, ec);
  EXPECT_EQ(peer_port(peer), peer_port(local_endpoint(sends.number())));
  const auto silent = connect_to(address);
  ASSERT_TRUE(wait_for_client(acceptor)) << "the kernel passes a silent client on after about a second";
  const auto second = accept_connection(acceptor, peer, ec);
  EXPECT_EQ(peer_port(peer), peer_port(local_endpoint(silent.number())));

  defer_accept(acceptor, false);
  const auto later = connect_to(address);
  EXPECT_GE(accept_connection(acceptor, peer, ec).get(), 0);
}

TEST(Listener, PortClosesWhenItsLastSocketIsDestroyed) {
  base::Endpoint address;
  {
    auto socket = ListeningSocket::open(local());
    ASSERT_TRUE(socket);
    address = socket->address();
    const ListeningSocket moved = std::move(*socket);
    EXPECT_GE(connect_to(address).number(), 0);
  }
  EXPECT_LT(connect_to(address).number(), 0);
}

TEST_F(UnixListener, SocketCanBeSharedByTwoWorkers) {
  const auto first = ListeningSocket::open(address);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = first->again();
  ASSERT_TRUE(second);
  EXPECT_GE(connect_to(address).number(), 0);
}

TEST_F(UnixListener, DoesNotReplaceASocketInUse) {
  const auto first = ListeningSocket::open(address);
  ASSERT_TRUE(first);
  const auto second = ListeningSocket::open(address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "cannot listen on " + address.to_string() + ": Address already in use");
  EXPECT_GE(connect_to(address).number(), 0);
}

// The socket's queue is full, so connecting fails although a process listens.
TEST_F(UnixListener, DoesNotReplaceASocketWhoseQueueIsFull) {
  const auto endpoint = resolve(address)->front();
  const auto size = static_cast<socklen_t>(endpoint.size());
  const Descriptor busy(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(busy.number(), endpoint.data(), size), 0);
  ASSERT_EQ(::listen(busy.number(), 0), 0);
  std::vector<Descriptor> queue;
  do {
    queue.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  } while (::connect(queue.back().number(), endpoint.data(), size) == 0);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_FALSE(ListeningSocket::open(address));
  EXPECT_TRUE(std::filesystem::exists(address.unix_path));
}

TEST_F(UnixListener, ReplacesTheFileOfASocketThatNobodyServes) {
  asio::io_context context;
  {
    auto dead = ListeningSocket::open(address);
    ASSERT_TRUE(dead);
    (void)std::move(*dead).into_acceptor(context.get_executor());
  }
  ASSERT_TRUE(std::filesystem::exists(address.unix_path));
  const auto next = ListeningSocket::open(address);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_GE(connect_to(address).number(), 0);
}

TEST_F(UnixListener, UnusedListeningSocketRemovesItsFile) {
  {
    auto refused = ListeningSocket::open(address);
    ASSERT_TRUE(refused);
    const auto moved = std::move(*refused);
    const auto another = moved.again();
    EXPECT_TRUE(std::filesystem::exists(address.unix_path));
  }
  EXPECT_FALSE(std::filesystem::exists(address.unix_path));
}

TEST_F(UnixListener, DoesNotReplaceAFileThatIsNoSocket) {
  std::ofstream(address.unix_path) << "precious";
  EXPECT_FALSE(ListeningSocket::open(address));
  std::string content;
  std::ifstream(address.unix_path) >> content;
  EXPECT_EQ(content, "precious");
}

TEST(PeerAddress, ReturnsIpv4MappedAddressesAsIpv4) {
  const RawEndpoint v4(asio::ip::tcp::endpoint(asio::ip::make_address("203.0.113.7"), 1));
  EXPECT_EQ(peer_address(v4).to_string(), "203.0.113.7");
  const RawEndpoint v6(asio::ip::tcp::endpoint(asio::ip::make_address("2001:db8::1"), 1));
  EXPECT_EQ(peer_address(v6).to_string(), "2001:db8::1");
  const RawEndpoint mapped(asio::ip::tcp::endpoint(asio::ip::make_address("::ffff:203.0.113.7"), 1));
  EXPECT_EQ(peer_address(mapped).to_string(), "203.0.113.7");
}

}  // namespace
}  // namespace weir::net
