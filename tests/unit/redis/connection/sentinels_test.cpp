#include "redis/connection/sentinels.hpp"

#include <gtest/gtest.h>

namespace weir::redis {
namespace {

Reply read(std::string_view bytes) {
  ReplyReader reader;
  reader.feed(bytes);
  EXPECT_EQ(reader.next(), ReplyReader::Next::Ready);
  return reader.reply();
}

TEST(Sentinels, AddressOfTheMasterIsReadFromTheReplyOfASentinel) {
  EXPECT_EQ(master_in(read("*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6379\r\n")),
            (base::Endpoint{"10.0.0.1", 6379, ""}));
  EXPECT_EQ(master_in(read("*2\r\n$3\r\n::1\r\n$5\r\n65535\r\n")), (base::Endpoint{"::1", 65535, ""}));
}

TEST(Sentinels, NoMasterIsReadFromAnInvalidReply) {
  for (const char* bytes :
       {"*-1\r\n", "$-1\r\n", "-ERR\r\n", "*1\r\n$1\r\na\r\n", "*2\r\n$1\r\na\r\n$1\r\n0\r\n",
        "*2\r\n$1\r\na\r\n$5\r\n65536\r\n", "*2\r\n$1\r\na\r\n$2\r\n1x\r\n", "*2\r\n$0\r\n\r\n$4\r\n6379\r\n",
        "*2\r\n:1\r\n:2\r\n"})
    EXPECT_FALSE(master_in(read(bytes))) << bytes;
}

TEST(Sentinels, AddressOfTheNewMasterIsReadFromTheMessageAboutASwitch) {
  const auto message = [](std::string_view channel, std::string_view text) {
    std::string bytes = "*3\r\n$7\r\nmessage\r\n";
    for (const auto word : {channel, text})
      bytes += "$" + std::to_string(word.size()) + "\r\n" + std::string(word) + "\r\n";
    return read(bytes);
  };
  const base::Endpoint there{"10.0.0.2", 6380, ""};
  EXPECT_EQ(switched_to(message("+switch-master", "m 10.0.0.1 6379 10.0.0.2 6380"), "m"), there);
  EXPECT_FALSE(switched_to(message("+switch-master", "other 10.0.0.1 6379 10.0.0.2 6380"), "m"));
  EXPECT_FALSE(switched_to(message("+switch-master", "m 10.0.0.1 6379"), "m"));
  EXPECT_FALSE(switched_to(message("+switch-master", ""), "m"));
  EXPECT_FALSE(switched_to(message("+sdown", "m 10.0.0.1 6379 10.0.0.2 6380"), "m"));
  EXPECT_FALSE(switched_to(read("*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"), "m"));
}

TEST(ReplyReader, TextsOfAnArrayReplyAreKeptUntilTheNextReply) {
  ReplyReader reader;
  reader.feed("*3\r\n$6\r\nmaster\r\n:5\r\n*1\r\n*2\r\n$1\r\na\r\n$-1\r\n*1\r\n:1\r\n");
  ASSERT_EQ(reader.next(), ReplyReader::Next::Ready);
  EXPECT_EQ(reader.reply().words, (std::vector<std::string>{"master", "a"}));
  ASSERT_EQ(reader.next(), ReplyReader::Next::Ready);
  EXPECT_TRUE(reader.reply().words.empty());
  EXPECT_EQ(reader.reply().kind, Reply::Kind::Numbers);
}

}  // namespace
}  // namespace weir::redis
