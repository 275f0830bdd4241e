#include "weir/http/chunked.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using Status = ChunkDecoder::Status;

struct Result {
  std::string body;
  Status last = Status::NeedMore;
  std::size_t used = 0;
};

// Feeds one piece of input in several calls, until the decoder has used the whole piece or stops.
void feed(ChunkDecoder& decoder, std::string_view input, Result& result) {
  for (;;) {
    const auto piece = decoder.next(input);
    EXPECT_LE(piece.used, input.size());
    result.body += piece.data;
    result.used += piece.used;
    result.last = piece.status;
    if (piece.status != Status::Data) return;
    input.remove_prefix(piece.used);
  }
}

Result decode(std::string_view input, ChunkDecoder::Sender sender = ChunkDecoder::Sender::Client) {
  ChunkDecoder decoder(sender);
  Result result;
  feed(decoder, input, result);
  return result;
}

// Feeds the input to a decoder byte by byte.
Result trickle(std::string_view input, ChunkDecoder::Sender sender = ChunkDecoder::Sender::Client) {
  ChunkDecoder decoder(sender);
  Result result;
  for (const char& c : input) {
    feed(decoder, {&c, 1}, result);
    if (result.last == Status::Bad || result.last == Status::Done) break;
  }
  return result;
}

TEST(ChunkDecoder, DecodesValidChunkedBodies) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"0\r\n\r\n", ""},
      {"5\r\nhello\r\n0\r\n\r\n", "hello"},
      {"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde"},
      {"A\r\n0123456789\r\n0\r\n\r\n", "0123456789"},
      {"a\r\n0123456789\r\n000\r\n\r\n", "0123456789"},
      {"0005\r\nhello\r\n0\r\n\r\n", "hello"},
      {"5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n", "hello"},
      {"5 ;a\r\nhello\r\n0\t;b\r\n\r\n", "hello"},
      {"5\r\n\r\n\r\n0\r\n0\r\n\r\n", "\r\n\r\n0"},
      {"1\r\nx\r\n0\r\nContent-Length: 5\r\nX: y\r\n\r\n", "x"},
  };
  for (const auto& [coded, body] : cases) {
    for (const auto& result : {decode(coded), trickle(coded)}) {
      EXPECT_EQ(result.last, Status::Done) << coded;
      EXPECT_EQ(result.body, body) << coded;
      EXPECT_EQ(result.used, coded.size()) << coded;
    }
  }
}

TEST(ChunkDecoder, RejectsInvalidChunkedBodies) {
  const std::string_view cases[] = {
      "\r\n",
      "g\r\n",
      "-1\r\n",
      "+1\r\n",
      "0x5\r\nhello\r\n",
      " 5\r\nhello\r\n",
      ";x\r\n",
      "5\nhello\r\n",
      "5\rhello\r\n",
      "5\r\r\nhello",
      "5 5\r\nhello\r\n",
      "5 x\r\nhello\r\n",
      "5\"\r\nhello\r\n",
      "5;a\nhello\r\n",
      "5;a\x7f\r\nhello\r\n",
      "5;\x01\r\nhello\r\n",
      "5\r\nhello!\r\n",
      "5\r\nhello\n",
      "5\r\nhello\rX",
      "3\r\nhello\r\n0\r\n\r\n",
      "0\r\n\rX",
      "0\r\nX: y\n\r\n",
      "0\r\nX: y\r\r\n",
      "0\r\n\n",
  };
  for (const auto coded : cases) {
    EXPECT_EQ(decode(coded).last, Status::Bad) << coded;
    EXPECT_EQ(trickle(coded).last, Status::Bad) << coded;
  }
}

TEST(ChunkDecoder, AcceptsSpacesAfterAChunkSizeFromServersOnly) {
  for (const std::string_view coded : {"5 \r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0 \t \r\n\r\n"}) {
    for (const auto& result :
         {decode(coded, ChunkDecoder::Sender::Server), trickle(coded, ChunkDecoder::Sender::Server)}) {
      EXPECT_EQ(result.last, Status::Done) << coded;
      EXPECT_EQ(result.body, "hello") << coded;
    }
    EXPECT_EQ(decode(coded).last, Status::Bad) << coded;
    EXPECT_EQ(trickle(coded).last, Status::Bad) << coded;
  }
}

TEST(ChunkDecoder, BodyIsNotCompleteBeforeItsLastByte) {
  const std::string_view coded = "5;x\r\nhello\r\n0\r\nA: b\r\n\r\n";
  for (std::size_t size = 0; size < coded.size(); ++size) {
    ChunkDecoder decoder;
    Result result;
    feed(decoder, coded.substr(0, size), result);
    EXPECT_EQ(result.last, Status::NeedMore) << size;
    EXPECT_EQ(result.used, size);
    EXPECT_FALSE(decoder.done());
  }
}

// Regression, found by tests/fuzz/chunked_fuzz.cpp: a rejected byte had changed the state of the decoder.
TEST(ChunkDecoder, BodyWithAnInvalidLastByteIsNeverComplete) {
  ChunkDecoder decoder;
  Result result;
  feed(decoder, "0\r\n\rx", result);
  EXPECT_EQ(result.last, Status::Bad);
  EXPECT_FALSE(decoder.done());
  EXPECT_EQ(decoder.next("x").status, Status::Bad) << "the decoder continued after an error";
}

TEST(ChunkDecoder, BytesAfterTheBodyAreNotConsumed) {
  const std::string_view coded = "1\r\nx\r\n0\r\n\r\nGET / HTTP/1.1\r\n";
  ChunkDecoder decoder;
  Result result;
  feed(decoder, coded, result);
  EXPECT_EQ(result.last, Status::Done);
  EXPECT_EQ(coded.substr(result.used), "GET / HTTP/1.1\r\n");
  EXPECT_TRUE(decoder.done());
  const auto again = decoder.next("more");
  EXPECT_EQ(again.status, Status::Done);
  EXPECT_EQ(again.used, 0U);
}

TEST(ChunkDecoder, HugeChunkSizesAreRejectedWithoutOverflow) {
  EXPECT_EQ(decode("fffffffffffffff\r\nx").last, Status::NeedMore);
  EXPECT_EQ(decode("fffffffffffffff\r\nx").body, "x");
  EXPECT_EQ(decode("1000000000000000\r\n").last, Status::Bad);
  EXPECT_EQ(decode("10000000000000005\r\nhello\r\n").last, Status::Bad);
  EXPECT_EQ(decode("ffffffffffffffff1\r\n").last, Status::Bad);
}

TEST(ChunkDecoder, RejectsTooLongExtensionsAndTrailers) {
  const std::string most(16 << 10, 'x');
  EXPECT_EQ(decode("1;" + most.substr(1) + "\r\ny\r\n0\r\n\r\n").last, Status::Done);
  EXPECT_EQ(decode("1;" + most).last, Status::Bad);
  EXPECT_EQ(decode("0\r\nx:" + most.substr(2) + "\r\n\r\n").last, Status::Done);
  EXPECT_EQ(decode("0\r\nx:" + most.substr(2) + "x").last, Status::Bad);
  std::string many = "0\r\n";
  for (int i = 0; i < 5000; ++i) many += "X: y\r\n";
  EXPECT_EQ(decode(many).last, Status::Bad);
}

TEST(ChunkDecoder, RejectsMalformedChunkExtensionsOfClientsButNotOfServers) {
  for (const auto* good :
       {";a", ";a=b", "; a = b", ";a=\"\"", ";a=\"b;\\\"c\"", ";a;b", " ;a=1 ;b=\"2\";c", "\t;\ta\t;b"})
    EXPECT_EQ(decode(std::string("1") + good + "\r\nx\r\n0\r\n\r\n").last, Status::Done) << good;
  for (const auto* bad : {";", ";;a", ";=v", ";a=", ";a= ", ";a b", "; a b c", ";a=\"", ";a=\"b\"c",
                          ";a=\"b\\", ";a=b=c", ";a ", ";a=b ", ";a,b", ";\"a\"", ";a=b\"c\"", ";\xc3\xa4"}) {
    EXPECT_EQ(decode(std::string("1") + bad + "\r\nx\r\n0\r\n\r\n").last, Status::Bad) << bad;
    EXPECT_EQ(decode(std::string("1") + bad + "\r\nx\r\n0\r\n\r\n", ChunkDecoder::Sender::Server).last,
              Status::Done)
        << bad;
  }
}

TEST(ChunkDecoder, RejectsMalformedTrailersOfClientsButNotOfServers) {
  for (const auto* good : {"X: a", "X:", "x-y:\t a b ", "X: a\r\nY: b"})
    EXPECT_EQ(decode(std::string("0\r\n") + good + "\r\n\r\n").last, Status::Done) << good;
  for (const auto* bad : {"no colon here", "nothing", "X : a", ": a", "X: a\r\n folded", " X: a",
                          "X: a\r\n\tb", "GET /evil HTTP/1.1\r\nHost: x", "\xc3\xa4: b"}) {
    EXPECT_EQ(decode(std::string("0\r\n") + bad + "\r\n\r\n").last, Status::Bad) << bad;
    EXPECT_EQ(decode(std::string("0\r\n") + bad + "\r\n\r\n", ChunkDecoder::Sender::Server).last,
              Status::Done)
        << bad;
  }
}

TEST(ChunkDecoder, RejectsAChunkSizeWithTooManyLeadingZeros) {
  EXPECT_EQ(decode(std::string(100, '0') + "1\r\nx\r\n0\r\n\r\n").body, "x");
  EXPECT_EQ(decode(std::string(20 << 10, '0')).last, Status::Bad);
}

TEST(ChunkDecoder, AcceptsALongBodyWithAnExtensionInEachLargeChunk) {
  ChunkDecoder decoder;
  Result result;
  const auto chunk = "100;signature=0123456789\r\n" + std::string(0x100, 'x') + "\r\n";
  for (int i = 0; i < 5000; ++i) feed(decoder, chunk, result);
  feed(decoder, "0\r\n\r\n", result);
  EXPECT_EQ(result.last, Status::Done);
  EXPECT_EQ(result.body.size(), 5000U * 0x100);
}

TEST(ChunkDecoder, RejectsTooManyTinyChunksWithExtensions) {
  ChunkDecoder decoder;
  Result result;
  for (int i = 0; i < 5000 && result.last != Status::Bad; ++i) feed(decoder, "1;a=bcdefg\r\nx\r\n", result);
  EXPECT_EQ(result.last, Status::Bad);
}

std::string random_text(std::mt19937& random, std::size_t size) {
  std::string text(size, '\0');
  for (auto& c : text) c = static_cast<char>(random());
  return text;
}

// A body must decode to the same data, whatever its chunks are and however it is divided into pieces of
// input.
TEST(ChunkDecoder, DecodesTheSameBodyHoweverItIsDivided) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto body = random_text(random, random() % 300);
    std::string coded;
    for (std::size_t at = 0; at < body.size();) {
      const auto size = std::min<std::size_t>(1 + random() % 60, body.size() - at);
      append_chunk_size(coded, size);
      if (random() % 4 == 0) coded.insert(coded.size() - 2, ";ext=\"v\"");
      coded.append(body, at, size).append("\r\n");
      at += size;
    }
    coded += random() % 2 == 0 ? kLastChunk : std::string_view("0\r\nTrailer: x\r\n\r\n");
    const auto whole = coded.size();
    coded += "next";

    ChunkDecoder decoder;
    Result result;
    while (result.last != Status::Done) {
      ASSERT_LT(result.used, whole);
      const auto size = std::min<std::size_t>(1 + random() % 40, coded.size() - result.used);
      feed(decoder, std::string_view(coded).substr(result.used, size), result);
      ASSERT_NE(result.last, Status::Bad);
    }
    ASSERT_EQ(result.body, body);
    ASSERT_EQ(result.used, whole);
  }
}

TEST(AppendChunkSize, WritesAHexadecimalNumberAndALineEnd) {
  std::string out = "x";
  append_chunk_size(out, 0x1aF);
  EXPECT_EQ(out, "x1af\r\n");
  out.clear();
  append_chunk_size(out, ~std::uint64_t{0});
  EXPECT_EQ(out, "ffffffffffffffff\r\n");
}

}  // namespace
}  // namespace weir::http
