#include "weir/http/frame_scanner.hpp"

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace weir::http {
namespace {

using Kind = FrameScanner::Kind;
using Sender = FrameScanner::Sender;

constexpr unsigned kFinal = 0x80;

// Returns a frame in the form in which `sender` sends it: clients mask their frames.
std::string frame(unsigned first, std::size_t length, Sender sender = Sender::Client) {
  std::string out(1, static_cast<char>(first));
  const unsigned mask = sender == Sender::Client ? 0x80 : 0;
  const unsigned width = length < 126 ? 0 : length < 65'536 ? 2 : 8;
  out += static_cast<char>(mask | (width == 0 ? length : width == 2 ? 126U : 127U));
  for (unsigned at = width; at-- > 0;) out += static_cast<char>(length >> (8 * at) & 0xffU);
  if (mask != 0) out += "mask";
  return out + std::string(length, '\x81');  // the payload looks like the beginning of a frame
}

char letter(Kind kind) {
  switch (kind) {
    case Kind::Message:
      return 'm';
    case Kind::Continuation:
      return 'c';
    case Kind::Ping:
      return 'i';
    case Kind::Pong:
      return 'o';
    default:
      return 'x';
  }
}

// Returns the kinds of the frames that the scanner finds in `bytes`, which arrive in pieces of `next_size`
// octets. Each kind is a letter: message m, continuation c, ping i, pong o, close x. "!" and the number of
// unread octets stand for a fault, "~" for an unfinished frame.
template <class NextSize>
std::string frames_found(std::string_view bytes, NextSize next_size, Sender sender = Sender::Client) {
  FrameScanner scanner(sender);
  std::string text;
  std::size_t taken = 0;
  std::size_t shown = 0;
  while (shown < bytes.size()) {
    shown = std::min(bytes.size(), shown + next_size());
    for (;;) {
      const auto piece = scanner.next(bytes.substr(taken, shown - taken));
      if (piece.kind == Kind::Faulty) return text + "!" + std::to_string(bytes.size() - taken);
      if (piece.kind == Kind::NeedMore) {
        EXPECT_EQ(piece.size, 0U);
        EXPECT_LT(shown - taken, FrameScanner::kMostHeader);
        break;
      }
      EXPECT_GT(piece.size, 0U);
      taken += piece.size;
      if (piece.kind != Kind::Payload) text += letter(piece.kind);
    }
  }
  return text + (scanner.between_frames() && taken == shown ? "" : "~");
}

std::string frames_found_at_once(std::string_view bytes, Sender sender = Sender::Client) {
  return frames_found(
      bytes, [&] { return bytes.size(); }, sender);
}

std::string a_conversation(Sender sender) {
  return frame(kFinal | 1, 0, sender) + frame(kFinal | 2, 125, sender) + frame(1, 126, sender) +
         frame(kFinal | 9, 4, sender) + frame(0, 0, sender) + frame(kFinal | 10, 125, sender) +
         frame(kFinal, 65'535, sender) + frame(kFinal | 0x40 | 1, 65'536, sender) +
         frame(kFinal | 8, 2, sender);
}

TEST(FrameScanner, MessageInSeveralFramesIsCountedOnce) {
  for (const auto sender : {Sender::Client, Sender::Server})
    EXPECT_EQ(frames_found_at_once(a_conversation(sender), sender), "mmmicocmx");
}

// Splits the input at every position, and into single octets. The scanner must find the same frames each
// time.
TEST(FrameScanner, FindsTheSameFramesHoweverTheBytesAreDivided) {
  const auto bytes = frame(kFinal | 1, 3) + frame(1, 130) + frame(kFinal | 9, 2) + frame(kFinal, 65'540) +
                     frame(kFinal | 8, 0);
  for (std::size_t split = 1; split < bytes.size();
       split += split < 200 || split > bytes.size() - 40 ? 1 : 997) {
    std::size_t sizes[] = {split, bytes.size()};
    std::size_t at = 0;
    EXPECT_EQ(frames_found(bytes, [&] { return sizes[at++ == 0 ? 0 : 1]; }), "mmicx") << split;
  }
  EXPECT_EQ(frames_found(bytes, [] { return 1; }), "mmicx");
}

TEST(FrameScanner, FindsRandomFramesHoweverTheirBytesAreDivided) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    std::string expected;
    bool open = false;
    for (int i = 0; i < 20; ++i) {
      const std::size_t lengths[] = {0, 1, random() % 126, 126, random() % 70'000};
      const bool control = random() % 4 == 0;
      const bool last = random() % 2 == 0;
      const auto length = lengths[random() % (control ? 3 : 5)];
      if (control) {
        const auto which = static_cast<unsigned>(random() % 2);
        bytes += frame(kFinal | (9 + which), length);
        expected += "io"[which];
      } else {
        bytes += frame((last ? kFinal : 0) | (open ? 0U : random() % 2 == 0 ? 1U : 2U), length);
        expected += open ? 'c' : 'm';
        open = !last;
      }
    }
    ASSERT_EQ(frames_found(bytes, [&] { return 1 + random() % 3000; }), expected);
  }
}

TEST(FrameScanner, RejectsInvalidFramesAndEverythingAfterThem) {
  const auto good = frame(kFinal | 1, 1);
  const std::pair<const char*, std::string> faults[] = {
      {"not masked", frame(kFinal | 1, 1, Sender::Server)},
      {"a ping of 126 octets", frame(kFinal | 9, 126)},
      {"a ping in two frames", frame(9, 1)},
      {"a continuation of nothing", frame(kFinal, 1)},
      {"a length of 125 in two octets", std::string("\x81\xfe\x00\x7d"
                                                    "mask",
                                                    8)},
      {"a length of 65535 in eight", std::string("\x81\xff\0\0\0\0\0\0\xff\xff"
                                                 "mask",
                                                 14)},
      {"a length beyond 63 bits", std::string("\x81\xff\x80\0\0\0\0\0\0\0"
                                              "mask",
                                              14)},
  };
  for (const auto& [what, bytes] : faults) {
    EXPECT_EQ(frames_found_at_once(good + bytes + good), "m!" + std::to_string(bytes.size() + good.size()))
        << what;
    FrameScanner scanner(Sender::Client);
    EXPECT_EQ(scanner.next(bytes).kind, Kind::Faulty) << what;
    EXPECT_EQ(scanner.next(good).kind, Kind::Faulty) << what;
    EXPECT_FALSE(scanner.between_frames()) << what;
  }
  EXPECT_EQ(frames_found_at_once(frame(1, 1) + frame(kFinal | 2, 1)), "m!7")
      << "a message begins within another message";
  EXPECT_EQ(frames_found_at_once(frame(kFinal | 1, 1), Sender::Server), "!7")
      << "a server sent a masked frame";
}

// RFC 6455 §5.5.1: after Close a peer sends no more frames.
TEST(FrameScanner, RejectsFramesAfterClose) {
  const auto close = frame(kFinal | 8, 2);
  FrameScanner open(Sender::Client);
  EXPECT_FALSE(open.closed());
  for (const auto& more : {close, frame(kFinal | 1, 1), frame(kFinal | 9, 0), std::string(1, 'x')})
    EXPECT_EQ(frames_found_at_once(close + more), "x!" + std::to_string(more.size())) << more;
  FrameScanner scanner(Sender::Client);
  ASSERT_EQ(scanner.next(close).kind, Kind::Close);
  ASSERT_EQ(scanner.next(std::string_view(close).substr(6)).kind, Kind::Payload);
  EXPECT_TRUE(scanner.closed());
  EXPECT_TRUE(scanner.between_frames()) << "a frame by weir may follow, and no octet of it was scanned";
  EXPECT_EQ(scanner.next({}).kind, Kind::NeedMore);
  EXPECT_EQ(scanner.next(close).kind, Kind::Faulty);
}

TEST(FrameScanner, FrameLengthsDoNotOverflow) {
  FrameScanner scanner(Sender::Client);
  const std::string header(
      "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
      "mask",
      14);
  EXPECT_EQ(scanner.next(header).kind, Kind::Message);
  EXPECT_EQ(scanner.next("\x81\x81").kind, Kind::Payload);
  EXPECT_FALSE(scanner.between_frames());
}

TEST(CloseFrame, ContainsTheStatusCodeAndIsMaskedIfSentToAServer) {
  std::string out;
  append_close_frame(out, kPolicyViolation, "slow");
  EXPECT_EQ(out, std::string("\x88\x06\x03\xf0slow"));
  EXPECT_EQ(frames_found_at_once(out, Sender::Server), "x");
  out.clear();
  append_close_frame(out, kPolicyViolation, "slow", {1, 2, 3, 4});
  EXPECT_EQ(out, "\x88\x86\x01\x02\x03\x04\x02\xf2phnu");
  EXPECT_EQ(frames_found_at_once(out), "x");
}

}  // namespace
}  // namespace weir::http
