// Memory that runs out while a client comes in closes that client, and nobody else.
#include "unit/proxy/lone_worker.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/net/reactor.hpp"
#include "weir/proxy/entrance.hpp"

#include <string>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using Tcp = net::asio::ip::tcp;

Configuration canned() {
  Configuration config;
  config.routes.push_back({.name = "all", .match = {}, .respond = policy::CannedResponse{.body = "here"}});
  return config;
}

struct House : LoneWorker {
  House() : LoneWorker(canned()) {
    auto listening = net::ListeningSocket::open(*base::parse_endpoint("127.0.0.1:0"));
    port = listening->address().port;
    entrance.emplace(worker, std::move(*listening).into_acceptor(context.get_executor()),
                     EntranceSettings{.tls = {}, .most_sessions = 1000}, [](const std::string&) {});
    entrance->open();
    // Warm, as a house is that has stood for a while: Asio keeps room for timers and services.
    net::Timer timer(context.get_executor());
    timer.expires_after(std::chrono::hours(1));
    timer.async_wait([](const net::ErrorCode&) {});
    auto early = connect();
    (void)ask(early);
  }
  // Serves others, so that memory that was given back is in use again.
  std::vector<Tcp::socket> fill(int count) {
    std::vector<Tcp::socket> held;
    for (int i = 0; i < count; ++i) {
      held.push_back(connect());
      (void)ask(held.back());
    }
    return held;
  }
  ~House() {
    tests::allocations_left = -1;
    entrance->close();
    turn();
    net::Reactor::of(context.get_executor()).end_tasks();
  }
  // What is ready now.
  void turn() {
    context.restart();
    while (context.poll_one() != 0) {
    }
  }
  // Until a client has its answer or its end.
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
  std::optional<Entrance> entrance;
};

TEST(EntranceMemory, WhoFindsNoneIsClosedAndTheNextOneIsServed) {
  int failed = 0;
  for (int left = 0; left < 40; ++left) {
    House house;
    auto first = house.connect();
    tests::allocations_left = left;
    try {
      house.turn();
    } catch (const std::bad_alloc&) {  // of Asio's own, before it calls us: that ends the process
      continue;
    }
    const bool scarce = tests::allocations_left == 0;
    tests::allocations_left = -1;
    if (scarce) ++failed;
    auto second = house.connect();
    EXPECT_NE(house.ask(second).find("here"), std::string::npos) << "after " << left << " allocations";
  }
  EXPECT_GE(failed, 3) << "a port, a session, its frames";
}

// A session whose frame finds no memory has not begun: a drain does not wait for it.
TEST(EntranceMemory, WhoNeverBeganIsNotWaitedFor) {
  for (int left = 0; left < 24; ++left) {
    House house;
    {
      const auto held = house.fill(3 * left + 3);
      auto first = house.connect();
      tests::allocations_left = left;
      try {
        house.turn();
      } catch (const std::bad_alloc&) {  // as above
        continue;
      }
      tests::allocations_left = -1;
    }
    for (int i = 0; i < 5000 && house.worker.sessions != 0; ++i) house.turn();
    house.entrance->close();
    house.turn();
    EXPECT_EQ(house.worker.sessions, 0U) << "after " << left << " allocations";
    EXPECT_TRUE(house.entrance->is_deserted()) << "after " << left << " allocations";
  }
}

}  // namespace
}  // namespace weir::proxy
