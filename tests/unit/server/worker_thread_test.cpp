// Tests that a worker's event loop ends on the worker's thread, and which connections the worker closes.
#include "server/process/worker_thread.hpp"

#include "weir/net/owned_descriptor.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace weir::server {
namespace {

using Tcp = net::asio::ip::tcp;

struct Callbacks {
  net::Clock clock;
  limit::KeyTable table{1000};
  proxy::SharedQueue queue{1};
  proxy::InFlight in_flight{0};
  proxy::ConnectionsPerIp connections_per_ip{0};
  proxy::BodyMemory body_memory{1 << 20};
  proxy::Shared shared{.clock = clock,
                       .table = table,
                       .queue = queue,
                       .in_flight = in_flight,
                       .connections_per_ip = connections_per_ip,
                       .body_memory = body_memory};
  redis::LastRefunds refunds;
  log::AccessLog access_log{"off", {}};
  log::Log log{log::LogLevel::Off};
  WorkerThread worker{{.shared = shared,
                       .config_snapshot = std::make_shared<proxy::ConfigSnapshot>(),
                       .shape = {.routes = 0, .rules = 0, .upstreams = 0},
                       .redis = nullptr,
                       .redis_refunds = refunds,
                       .shared_grants = nullptr,
                       .access_log = access_log,
                       .log = log,
                       .top = 0}};
};

// If the worker did not close the connection, the client would wait until the process ends. Open requests can
// delay this end by up to `drain`.
TEST(WorkerThread, ConnectionThatArrivesWhenTheDrainBeginsIsClosed) {
  Callbacks callbacks;
  auto listening = net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0"));
  ASSERT_TRUE(listening.has_value());
  const auto port = listening->address().port;
  net::asio::io_context context;
  Tcp::socket client(context);
  client.connect({net::asio::ip::address_v4::loopback(), port});

  // When the acceptor opens, it accepts the waiting client. It handles the client after the drain has begun.
  callbacks.worker.listen_on(0, std::move(*listening), {.tls = {}, .most_sessions = 100});
  callbacks.worker.drain();
  callbacks.worker.start();
  callbacks.worker.join();

  client.non_blocking(true);
  char byte = 0;
  net::ErrorCode ec;
  client.read_some(net::asio::buffer(&byte, 1), ec);
  EXPECT_TRUE(ec == net::asio::error::eof || ec == net::asio::error::connection_reset) << ec.message();
}

// Returns a socket that epoll rejects, because its descriptor was opened with O_PATH. Outside of tests, epoll
// rejects sockets if the system's limit of watches is reached.
net::ListeningSocket unwatchable_socket() {
  auto listening = net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0"));
  EXPECT_TRUE(listening.has_value());
  const net::OwnedDescriptor unwatchable(::open("/", O_PATH | O_CLOEXEC));
  EXPECT_GE(::dup2(unwatchable.get(), listening->native_handle()), 0);
  return std::move(*listening);
}

TEST(WorkerThread, WorkerDoesNotStartWithASocketThatItCannotWatch) {
  Callbacks callbacks;
  auto socket = unwatchable_socket();
  const auto name = socket.address().to_string();
  try {
    callbacks.worker.listen_on(0, std::move(socket), {.tls = {}, .most_sessions = 100});
    FAIL() << "clients of this socket would wait for ever";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("listener " + name + ": "), std::string::npos) << error.what();
  }
}

TEST(WorkerThread, WorkerContinuesIfItCannotWatchASocketThatAReloadAdds) {
  Callbacks callbacks;
  callbacks.worker.start();
  callbacks.worker.listen_on(0, unwatchable_socket(), {.tls = {}, .most_sessions = 100});
  callbacks.worker.drain();
  callbacks.worker.join();
  EXPECT_EQ(callbacks.worker.counters().accept_failures.value(), 1U);
}

// While an object of this class exists, the process can open no further file descriptors. Open descriptors
// stay open.
class NoDescriptorsLeft {
 public:
  NoDescriptorsLeft() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{0, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptorsLeft() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptorsLeft(const NoDescriptorsLeft&) = delete;
  NoDescriptorsLeft& operator=(const NoDescriptorsLeft&) = delete;

 private:
  rlimit before_{};
};

// Even a worker that has never had a client must be able to end without opening another descriptor.
TEST(WorkerThread, WorkerEndsNormallyWithoutFreeDescriptors) {
  auto callbacks = std::make_unique<Callbacks>();
  const NoDescriptorsLeft none;
  callbacks->worker.drain();
  callbacks->worker.start();
  callbacks->worker.join();
  callbacks.reset();
}

}  // namespace
}  // namespace weir::server
