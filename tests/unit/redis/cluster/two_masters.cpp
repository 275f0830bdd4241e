#include "unit/redis/cluster/two_masters.hpp"

#include "redis/scripts/bill.hpp"

#include "weir/limit/slot_hash.hpp"

#include <stdexcept>
#include <string>

#include <unistd.h>

namespace weir::redis {

namespace {

constexpr Slot kHalf = kSlots / 2;

std::unique_ptr<Server> start_node(unsigned short& port) {
  return start_on_ports([&port]() -> std::vector<std::string> {
    port = free_port();
    return {"--bind",
            "127.0.0.1",
            "--port",
            std::to_string(port),
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            std::to_string(free_port()),
            "--cluster-node-timeout",
            "60000",
            "--cluster-require-full-coverage",
            "no"};
  });
}

void command(const Server& node, const std::vector<std::string>& words) {
  const auto reply = node.ask(words);
  if (reply.kind == Reply::Kind::Error) throw std::runtime_error(words.at(1) + ": " + reply.text);
}

bool knows_all(const Server& node) {
  const auto text = node.ask({"CLUSTER", "INFO"}).text;
  return text.find("cluster_state:ok") != std::string::npos &&
         text.find("cluster_slots_assigned:16384") != std::string::npos;
}

}  // namespace

TwoMasters::TwoMasters(Slot first) {
  const std::array<std::size_t, 3> ends{0, first, kSlots};
  for (std::size_t i = 0; i < 2; ++i) {
    nodes_[i] = start_node(ports_[i]);
    command(*nodes_[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (ends[i] == ends[i + 1]) continue;
    command(*nodes_[i],
            {"CLUSTER", "ADDSLOTSRANGE", std::to_string(ends[i]), std::to_string(ends[i + 1] - 1)});
  }
  const auto bus = nodes_[1]->ask({"CONFIG", "GET", "cluster-port"}).words.at(1);
  command(*nodes_[0], {"CLUSTER", "MEET", "127.0.0.1", std::to_string(ports_[1]), bus});
  for (int i = 0; i < 4000; ++i) {
    if (knows_all(*nodes_[0]) && knows_all(*nodes_[1])) return;
    usleep(5000);  // no event shows when the nodes, which are other processes, are ready
  }
  throw std::runtime_error("the nodes do not agree");
}

RedisSettings TwoMasters::settings(base::Duration timeout) const {
  RedisSettings settings;
  settings.topology = Topology::Cluster;
  for (const auto port : ports_) settings.nodes.push_back({"127.0.0.1", port, ""});
  settings.timeout = timeout;
  return settings;
}

void TwoMasters::empty() {
  for (const auto& node : nodes_) command(*node, {"FLUSHALL"});
}

void TwoMasters::begin_move(Slot slot, std::size_t keys) {
  const auto name = [](const Server& node) { return node.ask({"CLUSTER", "MYID"}).text; };
  const auto number = std::to_string(slot);
  command(*nodes_[1], {"CLUSTER", "SETSLOT", number, "IMPORTING", name(*nodes_[0])});
  command(*nodes_[0], {"CLUSTER", "SETSLOT", number, "MIGRATING", name(*nodes_[1])});
  auto move =
      std::vector<std::string>{"MIGRATE", "127.0.0.1", std::to_string(ports_[1]), "", "0", "1000", "KEYS"};
  const auto there = nodes_[0]->ask({"CLUSTER", "GETKEYSINSLOT", number, std::to_string(keys)}).words;
  move.insert(move.end(), there.begin(), there.end());
  command(*nodes_[0], move);
}

void TwoMasters::give_up_move(Slot slot) {
  empty();
  for (const auto& node : nodes_) command(*node, {"CLUSTER", "SETSLOT", std::to_string(slot), "STABLE"});
}

void TwoMasters::give(Slot slot) {
  empty();
  const auto taker = nodes_[1]->ask({"CLUSTER", "MYID"}).text;
  // Tells the new owner of the slot first. As soon as the old owner is told, it redirects clients to the new
  // owner, which must then serve the slot.
  for (const std::size_t node : {1, 0})
    command(*nodes_[node], {"CLUSTER", "SETSLOT", std::to_string(slot), "NODE", taker});
}

limit::Key TwoMasters::key_at(std::size_t node, std::uint64_t n) {
  std::uint64_t seen = 0;
  for (unsigned i = 0; i <= 0xffff; ++i) {
    const auto place = static_cast<limit::SlotHash>(i);
    if (slot_of(place) / kHalf == node && seen++ == n)
      return limit::with_slot_hash({n * 0x9e3779b97f4a7c15 >> 20, n}, place);
  }
  throw std::out_of_range("no such key");
}

}  // namespace weir::redis
