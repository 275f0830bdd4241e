// Requests end in the edition that they began with, and an edition goes with the last of them, whichever
// worker's it is. Under ThreadSanitizer as well.
#include "weir/proxy/edition.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

std::shared_ptr<const Edition> edition_of(std::uint64_t number) {
  auto edition = std::make_shared<Edition>();
  edition->config.server.max_body = number;
  return edition;
}

struct Worker {
  explicit Worker(std::shared_ptr<const Edition> edition)
      : watchdog(context.get_executor()), terms(context.get_executor(), watchdog, std::move(edition)) {}
  net::asio::io_context context{1};
  net::Watchdog watchdog;
  Terms terms;
};

TEST(Terms, ARequestStaysInTheEditionThatItBeganWith) {
  auto first = edition_of(1);
  const std::weak_ptr<const Edition> old = first;
  Worker worker(std::move(first));
  auto early = std::make_unique<Terms::Stay>(worker.terms);
  auto other = std::make_unique<Terms::Stay>(worker.terms);
  worker.terms.begin(edition_of(2));
  EXPECT_EQ(worker.terms.config().server.max_body, 2U);
  EXPECT_EQ(early->config().server.max_body, 1U);
  const Terms::Stay late(worker.terms);
  EXPECT_EQ(late.config().server.max_body, 2U);
  early.reset();
  EXPECT_FALSE(old.expired());
  other.reset();
  EXPECT_TRUE(old.expired());
}

TEST(Terms, AnEditionThatNobodyStaysInGoesAtOnce) {
  auto first = edition_of(1);
  const std::weak_ptr<const Edition> old = first;
  Worker worker(std::move(first));
  worker.terms.begin(edition_of(2));
  EXPECT_TRUE(old.expired());
}

TEST(Terms, ConnectionsToAnUnchangedUpstreamAreKeptByItsPool) {
  upstream::UpstreamSettings settings;
  settings.name = "api";
  const auto fleet = std::make_shared<upstream::Fleet>(settings, std::vector<upstream::Server>{});
  const auto with_fleets = [&](std::vector<std::shared_ptr<upstream::Fleet>> fleets) {
    auto edition = std::make_shared<Edition>();
    edition->fleets = std::move(fleets);
    return edition;
  };
  Worker worker(with_fleets({fleet}));
  const auto* pool = &Terms::Stay(worker.terms).pool(0);
  worker.terms.begin(
      with_fleets({std::make_shared<upstream::Fleet>(settings, std::vector<upstream::Server>{}), fleet}));
  EXPECT_EQ(&Terms::Stay(worker.terms).pool(1), pool);
  EXPECT_NE(&Terms::Stay(worker.terms).pool(0), pool);
}

// Each worker is told of new editions by posts while it has requests under way that end later.
TEST(Terms, WorkersGoOverOnTheirOwnAndTheLastOneFreesAnEdition) {
  constexpr std::uint64_t kEditions = 200;
  constexpr std::size_t kWorkers = 3;
  std::atomic<std::uint64_t> freed{0};
  const auto counted = [&](std::uint64_t number) {
    auto* edition = new Edition();
    edition->config.server.max_body = number;
    return std::shared_ptr<const Edition>(edition, [&](const Edition* gone) {
      freed.fetch_add(1, std::memory_order_relaxed);
      delete gone;
    });
  };
  std::vector<std::unique_ptr<Worker>> workers;
  {
    const auto first = counted(0);
    for (std::size_t i = 0; i < kWorkers; ++i) workers.push_back(std::make_unique<Worker>(first));
  }
  std::vector<std::thread> threads;
  for (auto& worker : workers)
    threads.emplace_back([&worker = *worker] {
      std::vector<std::unique_ptr<Terms::Stay>> requests;
      std::uint64_t last = 0;
      for (std::uint64_t count = 0; last < kEditions; ++count) {
        worker.context.poll();
        worker.context.restart();
        requests.push_back(std::make_unique<Terms::Stay>(worker.terms));
        const auto number = requests.back()->config().server.max_body;
        EXPECT_GE(number, last);
        last = number;
        if (requests.size() > 16) requests.erase(requests.begin() + static_cast<std::ptrdiff_t>(count % 16));
      }
    });
  for (std::uint64_t number = 1; number <= kEditions; ++number) {
    const auto edition = counted(number);
    for (auto& worker : workers)
      net::asio::post(worker->context, [&terms = worker->terms, edition] { terms.begin(edition); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(freed.load(), kEditions) << "all but the last";
}

}  // namespace
}  // namespace weir::proxy
