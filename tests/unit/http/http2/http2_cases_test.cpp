// The public test cases of HTTP/2 frames and HPACK: the sets http2-frame-test-case and hpack-test-case. The
// folder in $WEIR_HTTP2_CASES has their JSON files; without it, the tests are skipped. `./dev test` fetches
// the sets.
#include "unit/http/http2/http2_cases.hpp"

#include "weir/http/http2_session.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::http {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

constexpr Http2Limits kLimits{.max_streams = 1000, .stream_window = 65'535, .max_head = 1 << 20};
constexpr std::int64_t kTableSize = 4096;  // octets of the HPACK table that weir announces
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Records the events of one stream.
class Message final : public Http2StreamEvents {
 public:
  void on_field(std::string_view name, std::string_view value) override { fields.emplace_back(name, value); }
  void on_head() override { whole = true; }
  void on_data(std::string_view octets) override { body += octets; }
  void on_end() override {}
  void on_end_sent() override {}
  void on_closed(Http2Error error) override { closed = error; }
  [[nodiscard]] std::size_t give(char*, std::size_t, bool&) noexcept override { return 0; }
  [[nodiscard]] const Http2Fields* trailers() const noexcept override { return nullptr; }

  Http2Case::Fields fields;
  std::string body;
  bool whole = false;
  std::optional<Http2Error> closed;
};

// One end of a connection, whose peer sends the octets of the test cases.
class Connection final : private Http2Events {
 public:
  explicit Connection(Http2Side side) : side_(side), session_(*this, kLimits, side) {
    receive(side == Http2Side::Server ? kPreface : std::string_view());
    receive(frame_of(Http2Frame::kSettings, 0, 0, ""));
  }

  // Gives octets to the session. Returns the frames that the session sends.
  std::vector<Http2Frame> receive(std::string_view octets) {
    static_cast<void>(session_.receive(octets));
    std::string out;
    session_.write(out, 1 << 20);
    return frames_of(out);
  }
  // A client opens its next stream and returns the ID. A server only returns the ID of its peer's next
  // stream, which the test then opens with a frame.
  std::int32_t open() {
    if (side_ == Http2Side::Server) return next_ += 2;
    Http2Fields fields;
    for (const auto& [name, value] : {std::pair(":method", "GET"), {":scheme", "http"}, {":path", "/"}})
      fields.add(name, value);
    fields.add(":authority", "a");
    const auto id = session_.request(fields, false, messages[next_ + 2]);
    next_ = id.value_or(0);
    receive({});
    return next_;
  }
  // Resets the stream.
  void drop(std::int32_t id) {
    session_.reset(id, Http2Error::Cancel);
    receive({});
  }

  std::map<std::int32_t, Message> messages;

 private:
  [[nodiscard]] Http2StreamEvents* on_stream(std::int32_t id) override { return &messages[id]; }
  void on_cheap_frame(Http2CheapFrame) override {}
  void on_pong() override {}
  void on_failure() noexcept override {}

  const Http2Side side_;
  std::int32_t next_ = -1;
  Http2Session session_;
};

// Returns the errors of the GOAWAY and RST_STREAM frames.
std::vector<unsigned> errors_in(const std::vector<Http2Frame>& frames) {
  std::vector<unsigned> errors;
  for (const auto& frame : frames)
    if (const auto error = frame.error()) errors.push_back(*error);
  return errors;
}

// Returns true for fields that a message of HTTP/2 must not have (RFC 9113 §8.2, §8.3). The stories (the
// test cases of hpack-test-case) come from HTTP/1.1, so many of them have such fields.
bool is_forbidden(const Http2Case::Fields& fields, std::size_t at) {
  constexpr std::array kNames{"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"};
  const auto& [name, value] = fields[at];
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         (name.starts_with(':') && at != 0 && !fields[at - 1].first.starts_with(':')) ||
         (!value.empty() && (is_blank(value.front()) || is_blank(value.back())));
}

// Returns the fields without the Content-Length of a 204, which the codec drops (RFC 9110 §8.6).
Http2Case::Fields without_dropped(Http2Case::Fields fields) {
  const std::pair<std::string, std::string> no_content{":status", "204"};
  if (fields.front() == no_content)
    std::erase_if(fields, [](const auto& field) { return field.first == "content-length"; });
  return fields;
}

class Http2CasesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("WEIR_HTTP2_CASES");
    if (folder == nullptr || *folder == '\0')
      GTEST_SKIP()
          << "WEIR_HTTP2_CASES names no folder with the sets http2-frame-test-case and hpack-test-case";
    cases = folder;
  }
  std::filesystem::path cases;
};

// Gives the heads of a story to one connection, each on a stream of its own. Counts the heads that arrived
// whole, and the heads that were refused because of a forbidden field.
void expect_story(const Http2Story& story, std::map<std::string, int>& count) {
  SCOPED_TRACE(story.name);
  Connection connection(story.is_answers ? Http2Side::Client : Http2Side::Server);
  for (const auto& [listed, wire] : story.cases) {
    const auto fields = without_dropped(listed);
    const auto id = connection.open();
    const auto sent = connection.receive(frame_of(Http2Frame::kHeaders, Http2Frame::kEndHeaders, id, wire));
    const auto& message = connection.messages[id];
    if (message.whole) {
      ++count["whole"];
      ASSERT_EQ(message.fields, fields) << "stream " << id;
    } else {
      ++count["refused"];
      const auto arrived = message.fields.size();
      ASSERT_LT(arrived, fields.size()) << "stream " << id;
      ASSERT_TRUE(std::equal(message.fields.begin(), message.fields.end(), fields.begin()))
          << "stream " << id;
      ASSERT_TRUE(is_forbidden(fields, arrived)) << fields[arrived].first << ": " << fields[arrived].second;
      ASSERT_EQ(errors_in(sent), std::vector{static_cast<unsigned>(Http2Error::Protocol)});
    }
    connection.drop(id);
  }
}

TEST_F(Http2CasesTest, HpackTestCasesDecodeToTheirExpectedFields) {
  std::map<std::string, int> count;
  const auto stories = read_stories(cases);
  ASSERT_FALSE(stories.empty()) << cases << " has no folder hpack-test-case";
  for (const auto& story : stories) {
    if (story.table_size <= kTableSize) expect_story(story, count);
    ++count[story.table_size <= kTableSize ? "stories" : "skipped"];
  }
  std::cout << count["stories"] << " stories: " << count["whole"] << " heads with all their fields, "
            << count["refused"] << " refused at a field that HTTP/2 forbids; skipped " << count["skipped"]
            << " stories for larger tables\n";
  EXPECT_GT(count["whole"], 0);
}

TEST_F(Http2CasesTest, InvalidFrameCausesOneOfTheErrorsThatTheTestSetAllows) {
  int count = 0;
  for (const auto side : {Http2Side::Server, Http2Side::Client}) {
    for (const auto& [name, wire, errors, data] : read_frame_cases(cases)) {
      if (errors.empty()) continue;
      SCOPED_TRACE(name);
      const auto found = errors_in(Connection(side).receive(wire));
      ASSERT_FALSE(found.empty());
      EXPECT_THAT(errors, Contains(found.front()));
      ++count;
    }
  }
  ASSERT_GT(count, 0) << cases << " has no folder http2-frame-test-case";
  std::cout << count << " bad frames, half of them from clients\n";
}

// Each frame of the set is a test case of its own. The test sends the frame on an open stream, unless the
// frame concerns the whole connection. The header blocks of these frames are not valid HPACK, so the session
// may report a compression error for them.
TEST_F(Http2CasesTest, ValidFramesOfTheTestSetAreAccepted) {
  int count = 0;
  for (auto& [name, wire, errors, data] : read_frame_cases(cases)) {
    if (!errors.empty()) continue;
    SCOPED_TRACE(name);
    ++count;
    Connection connection(Http2Side::Server);
    const auto id = connection.open();
    const auto kind = Http2Frame::kind_of(wire);
    const bool begins = kind == Http2Frame::kHeaders;
    const bool goes_on = kind == Http2Frame::kContinuation;
    if (!Http2Frame::concerns_connection(wire) && !begins) {
      const std::string head =
          "\x83\x86\x84\x41\x01"
          "a";
      const std::uint8_t flags = goes_on ? 0 : Http2Frame::kEndHeaders;
      ASSERT_THAT(errors_in(connection.receive(frame_of(Http2Frame::kHeaders, flags, id, head))), IsEmpty());
      Http2Frame::set_stream(wire, id);
    }
    const auto sent = connection.receive(wire);
    if (kind == Http2Frame::kPushPromise) {
      EXPECT_THAT(errors_in(sent), Contains(static_cast<unsigned>(Http2Error::Protocol)));
    } else if (begins || goes_on) {
      const auto found = errors_in(sent);
      EXPECT_TRUE(found.empty() || found.front() == static_cast<unsigned>(Http2Error::Compression));
    } else {
      EXPECT_THAT(errors_in(sent), IsEmpty());
    }
    if (kind == Http2Frame::kPing) {
      EXPECT_THAT(sent, Contains(Http2Frame{kind, 1, 0, wire.substr(Http2Frame::kHead)}));
    }
    EXPECT_EQ(connection.messages[id].body, data);
    EXPECT_EQ(connection.messages[id].closed.has_value(), kind == Http2Frame::kReset);
  }
  std::cout << count << " good frames\n";
}

}  // namespace
}  // namespace weir::http
