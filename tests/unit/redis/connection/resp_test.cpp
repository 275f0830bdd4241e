#include "redis/connection/resp.hpp"

#include "redis/connection/command.hpp"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

namespace weir::redis {
namespace {

using Kind = Reply::Kind;
using Next = ReplyReader::Next;

TEST(Command, WrittenCommandEqualsTheBytesThatHiredisWrites) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> words(1 + random() % 40);
    for (auto& word : words) {
      word.resize(random() % (round % 10 == 0 ? 5000 : 20));
      for (char& c : word) c = static_cast<char>(random());
    }
    std::vector<const char*> argv;
    std::vector<std::size_t> sizes;
    std::string ours;
    append_head(ours, words.size());
    for (const auto& word : words) {
      argv.push_back(word.data());
      sizes.push_back(word.size());
      append_bulk(ours, word);
    }
    char* theirs = nullptr;
    const int size =
        redisFormatCommandArgv(&theirs, static_cast<int>(argv.size()), argv.data(), sizes.data());
    ASSERT_GT(size, 0);
    EXPECT_EQ(ours, std::string(theirs, static_cast<std::size_t>(size)));
    redisFreeCommand(theirs);
  }
}

TEST(ReplyReader, ReadsRepliesSplitAtAnyByte) {
  const std::string stream =
      "+OK\r\n-OOM "
      "no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*3\r\n:1\r\n:9007199254740991\r\n:0\r\n*2\r\n:1\r\n$1\r\nx\r\n*"
      "0\r\n*1\r\n*1\r\n:5\r\n";
  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    ReplyReader reader;
    std::vector<Reply> replies;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      reader.feed(std::string_view(stream).substr(at, piece));
      while (reader.next() == Next::Ready) replies.push_back(reader.reply());
    }
    ASSERT_EQ(replies.size(), 9U) << "pieces of " << piece;
    EXPECT_EQ(replies[0].kind, Kind::Status);
    EXPECT_EQ(replies[1].kind, Kind::Error);
    EXPECT_EQ(replies[1].text, "OOM no");
    EXPECT_EQ(replies[2].numbers, std::vector<std::int64_t>{-7});
    EXPECT_EQ(replies[3].text, "a\r\n");
    EXPECT_EQ(replies[4].kind, Kind::Nil);
    EXPECT_EQ(replies[5].kind, Kind::Numbers);
    EXPECT_EQ(replies[5].numbers, (std::vector<std::int64_t>{1, 9007199254740991, 0}));
    EXPECT_EQ(replies[6].kind, Kind::Other);
    EXPECT_EQ(replies[7].kind, Kind::Numbers);
    EXPECT_TRUE(replies[7].numbers.empty());
    EXPECT_EQ(replies[8].kind, Kind::Other);
  }
}

TEST(ReplyReader, RejectsBytesThatAreNotResp) {
  for (const char* text : {"HTTP/1.1 200 OK\r\n", "\r\n", "$abc\r\n", "*1\r\n?\r\n", ":12x\r\n"}) {
    ReplyReader reader;
    reader.feed(text);
    EXPECT_EQ(reader.next(), Next::Malformed) << text;
    reader.reset();
    reader.feed("+OK\r\n");
    EXPECT_EQ(reader.next(), Next::Ready);
  }
}

TEST(ReplyReader, RejectsAReplyThatIsTooLarge) {
  ReplyReader reader;
  reader.feed("$100000000\r\n");
  const std::string piece(64 * 1024, 'x');
  int fed = 0;
  while (reader.next() == Next::Incomplete && fed < 100) {
    reader.feed(piece);
    ++fed;
  }
  EXPECT_LE(fed, 17);
  ReplyReader other;
  other.feed("*1000000\r\n");
  for (int i = 0; i < 10'000; ++i) {
    other.feed(":1\r\n");
    ASSERT_EQ(other.next(), Next::Incomplete);
  }
  EXPECT_LE(other.reply().numbers.size(), 4096U);
}

TEST(ReplyReader, RejectsAnArrayReplyWhoseTextsAreTooLargeTogether) {
  ReplyReader reader;
  reader.feed("*1024\r\n");
  const std::string word = "$65536\r\n" + std::string(65'536, 'x') + "\r\n";
  auto next = Next::Incomplete;
  int fed = 0;
  for (; fed < 1023 && next == Next::Incomplete; ++fed) {
    reader.feed(word);
    next = reader.next();
  }
  EXPECT_EQ(next, Next::Malformed);
  EXPECT_LE(fed, 16);
}

TEST(ReplyReader, RejectsAReplyWithTooManyElementsOrTooDeepNesting) {
  for (const std::string element : {":1\r\n", "$-1\r\n", "*0\r\n"}) {
    ReplyReader reader;
    std::string reply = "*100000\r\n";
    for (int i = 0; i < 99'999; ++i) reply += element;
    reader.feed(reply);
    EXPECT_EQ(reader.next(), Next::Malformed) << element;
  }
  for (int depth = 1; depth < 20; ++depth) {
    ReplyReader reader;
    for (int i = 0; i < depth; ++i) reader.feed("*1\r\n");
    reader.feed(":1\r\n");
    EXPECT_EQ(reader.next() == Next::Ready, depth <= 8) << depth;
  }
}

TEST(ReplyReader, TellsWhetherAReplyHasBegun) {
  for (const std::string reply : {"+OK\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n*1\r\n:2\r\n"}) {
    ReplyReader reader;
    for (std::size_t size = 0; size < reply.size(); ++size) {
      EXPECT_EQ(reader.next(), Next::Incomplete) << size;
      EXPECT_EQ(reader.has_begun(), size > 0) << size;
      reader.feed({&reply[size], 1});
    }
    EXPECT_EQ(reader.next(), Next::Ready);
    EXPECT_EQ(reader.next(), Next::Incomplete);
    EXPECT_FALSE(reader.has_begun());
  }
}

TEST(ReplyReader, SizeBoundAppliesToEachReplyAndNotToTheirSum) {
  ReplyReader reader;
  const std::string reply = "$600000\r\n" + std::string(600'000, 'x') + "\r\n";
  for (int i = 0; i < 4; ++i) {
    reader.feed(reply);
    EXPECT_EQ(reader.next(), Next::Ready) << i;
  }
}

}  // namespace
}  // namespace weir::redis
