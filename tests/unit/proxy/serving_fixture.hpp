// A worker that serves clients over loopback, on the event loop of the test.
#pragma once

#include "unit/proxy/lone_worker.hpp"

#include "weir/net/reactor.hpp"
#include "weir/proxy/acceptor.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

namespace weir::proxy {

using Tcp = net::asio::ip::tcp;

// Returns a configuration whose route answers every request without an upstream.
inline Configuration canned() {
  Configuration config;
  config.routes.push_back({.name = "all", .match = {}, .respond = policy::CannedResponse{.body = "here"}});
  return config;
}

// A listening acceptor and clients that connect to it.
struct ServingFixture : LoneWorker {
  explicit ServingFixture(Configuration configuration = canned()) : LoneWorker(std::move(configuration)) {
    auto listening = net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0"));
    port = listening->address().port;
    acceptor.emplace(worker, std::move(*listening).into_acceptor(context.get_executor()),
                     AcceptorSettings{.tls = {}, .most_sessions = 1000}, [](const std::string&) {});
    acceptor->open();
    // Makes Asio allocate the memory that it allocates only on first use, for timers and services.
    net::Timer timer(context.get_executor());
    timer.expires_after(std::chrono::hours(1));
    timer.async_wait([](const net::ErrorCode&) {});
    auto early = connect();
    (void)ask(early);
  }
  // Connects more clients and serves them, so that their connections use memory that earlier connections have
  // freed.
  std::vector<Tcp::socket> fill(int count) {
    std::vector<Tcp::socket> held;
    for (int i = 0; i < count; ++i) {
      held.push_back(connect());
      (void)ask(held.back());
    }
    return held;
  }
  ~ServingFixture() {
    acceptor->close();
    turn();
    net::Reactor::of(context.get_executor()).end_tasks();
  }
  // Runs all handlers that are ready.
  void turn() {
    context.restart();
    while (context.poll_one() != 0) {
    }
  }
  // Sends a request and runs the loop until the client gets the answer or the connection closes.
  std::string ask(Tcp::socket& client) {
    net::ErrorCode ec;
    net::asio::write(client, net::asio::buffer(std::string("GET / HTTP/1.1\r\nHost: a\r\n\r\n")), ec);
    client.non_blocking(true);
    std::string said(4096, '\0');
    std::size_t size = 0;
    do {
      turn();
      size = client.read_some(net::asio::buffer(said), ec);
    } while (ec == net::asio::error::would_block);
    return said.substr(0, size);
  }
  Tcp::socket connect() {
    Tcp::socket client(clients);
    client.connect({net::asio::ip::make_address("127.0.0.1"), port});
    return client;
  }

  net::asio::io_context clients{1};
  std::uint16_t port = 0;
  std::optional<Acceptor> acceptor;
};

}  // namespace weir::proxy
