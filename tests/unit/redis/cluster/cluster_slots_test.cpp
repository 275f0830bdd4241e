#include "redis/cluster/cluster_slots.hpp"

#include "unit/redis/connection/server.hpp"

#include <random>

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

const base::Endpoint kAsked{"10.0.0.9", 7000, ""};

std::vector<std::string> cluster_node() {
  return {"--cluster-enabled",        "yes", "--port", std::to_string(free_port()), "--cluster-port",
          std::to_string(free_port())};
}

TEST(SlotOf, AgreesWithTheRedisClusterSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3 % kSlots);  // the standard test value of CRC-16/XMODEM
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("foo{}{bar}"), 8363);  // "{}" is no hash tag, so Redis hashes the whole key
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_NE(slot_of("foo{bar"), slot_of("bar"));
  EXPECT_EQ(slot_of(""), 0);
}

TEST(SlotOf, EqualsTheSlotThatRedisComputes) {
  const auto server = start_on_ports(cluster_node);
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr std::string_view kLetters = "ab{}:\xff";
  for (int i = 0; i < 300; ++i) {
    std::string key(random() % 12, ' ');
    for (char& c : key) c = kLetters[random() % kLetters.size()];
    const auto reply = server->ask({"CLUSTER", "KEYSLOT", key});
    ASSERT_EQ(reply.numbers.at(0), slot_of(key)) << key;
  }
}

TEST(SlotMap, ParsesTheReplyOfClusterNodes) {
  const auto map = SlotMap::read(
      "aa 10.0.0.1:7001@17001,one.example slave cc 0 1426238317239 4 connected\n"
      "bb 10.0.0.2:7002@17002 master - 0 1426238316232 2 connected 5461-10922\n"
      "cc ::1:7003@17003,,tls-port=0 master,fail? - 0 1426238318243 3 connected 10923-16383 [93->-aa]\n"
      "dd :7000@17000 myself,master - 0 0 1 connected 0-99 101 [102-<-bb]\n"
      "ee :0@0 master,noaddr - 0 0 1 disconnected\n",
      kAsked);
  ASSERT_TRUE(map);
  ASSERT_EQ(map->masters().size(), 3U);
  EXPECT_EQ(*map->owner(5461), (base::Endpoint{"10.0.0.2", 7002, ""}));
  EXPECT_EQ(*map->owner(10922), (base::Endpoint{"10.0.0.2", 7002, ""}));
  EXPECT_EQ(*map->owner(16383), (base::Endpoint{"::1", 7003, ""}));
  EXPECT_EQ(*map->owner(0), kAsked);
  EXPECT_EQ(*map->owner(99), kAsked);
  EXPECT_EQ(map->owner(100), nullptr);
  EXPECT_EQ(*map->owner(101), kAsked);
  EXPECT_EQ(map->owner(102), nullptr);
  EXPECT_EQ(map->served(), 101U + (16384 - 5461));
}

TEST(SlotMap, MovingASlotChangesTheNodeOfThisSlotOnly) {
  auto map = SlotMap::read("bb 10.0.0.2:7002@17002 master - 0 0 2 connected 5-6\n", kAsked);
  ASSERT_TRUE(map);
  map->move(6, kAsked);
  map->move(7, {"10.0.0.2", 7002, ""});
  EXPECT_EQ(*map->owner(5), (base::Endpoint{"10.0.0.2", 7002, ""}));
  EXPECT_EQ(*map->owner(6), kAsked);
  EXPECT_EQ(map->owner(7), map->owner(5));
  EXPECT_EQ(map->masters().size(), 2U);
}

TEST(SlotMap, RejectsInvalidReplies) {
  for (const char* text :
       {"", "bb 10.0.0.2:7002@17002 master - 0 0 2\n", "bb 10.0.0.2 master - 0 0 2 connected 1\n",
        "bb 10.0.0.2:x@1 master - 0 0 2 connected 1\n", "bb 10.0.0.2:1@1 master - 0 0 2 connected 16384\n",
        "bb 10.0.0.2:1@1 master - 0 0 2 connected 6-5\n", "bb 10.0.0.2:1@1 master - 0 0 2 connected a-b\n",
        "bb 10.0.0.2:1@1 master - 0 0 2 connected -1\n", "nonsense\n"})
    EXPECT_FALSE(SlotMap::read(text, kAsked)) << text;
}

TEST(SlotMap, ParsesTheReplyOfARealNode) {
  const auto server = start_on_ports(cluster_node);
  ASSERT_EQ(server->ask({"CLUSTER", "ADDSLOTSRANGE", "0", "7000", "9000", "16383"}).text, "OK");
  const auto map = SlotMap::read(server->ask({"CLUSTER", "NODES"}).text, kAsked);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->served(), kSlots - 1999);
  ASSERT_NE(map->owner(7000), nullptr);
  // This node does not know its own address. The map then has the address to which the command was sent.
  EXPECT_EQ(map->owner(7000)->host, kAsked.host);
  EXPECT_EQ(map->owner(7001), nullptr);
}

TEST(Redirection, KindSlotAndAddressAreReadFromARedirection) {
  const auto moved = redirection_in("MOVED 3999 127.0.0.1:6381", kAsked);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->kind, Redirection::Kind::Moved);
  EXPECT_EQ(moved->slot, 3999);
  EXPECT_EQ(moved->to, (base::Endpoint{"127.0.0.1", 6381, ""}));
  const auto ask = redirection_in("ASK 0 :6381", kAsked);
  ASSERT_TRUE(ask);
  EXPECT_EQ(ask->kind, Redirection::Kind::Ask);
  EXPECT_EQ(ask->to, (base::Endpoint{kAsked.host, 6381, ""}));
  EXPECT_EQ(redirection_in("MOVED 1 ::1:6381", kAsked)->to.host, "::1");
  for (const char* error : {"MOVED", "MOVED 3999", "MOVED 16384 a:1", "MOVED x a:1", "MOVED 1 a",
                            "MOVED 1 a:0", "ASKING 1 a:1", "ERR MOVED 1 a:1", "MOVED 1 a:70000"})
    EXPECT_FALSE(redirection_in(error, kAsked)) << error;
}

}  // namespace
}  // namespace weir::redis
