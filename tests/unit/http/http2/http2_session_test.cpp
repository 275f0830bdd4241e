#include "weir/http/http2_session.hpp"

#include "unit/http/http2/http2_client.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <new>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::http {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Records the events of a stream, and stores the body of the answer.
class Stream final : public Http2StreamEvents {
 public:
  void on_field(std::string_view name, std::string_view value) override {
    if (scarce) throw std::bad_alloc();
    log.append(name).append("=").append(value).append("\n");
  }
  void on_head() override { log += "head\n"; }
  void on_data(std::string_view octets) override { body += octets; }
  void on_end() override { log += "end\n"; }
  void on_end_sent() override {}
  void on_closed(Http2Error error) override {
    log += "closed " + std::to_string(static_cast<unsigned>(error)) + "\n";
  }
  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& ended) noexcept override {
    const auto size = answer.copy(at, room);
    answer.erase(0, size);
    ended = answer_ends && answer.empty();
    return size;
  }
  [[nodiscard]] const Http2Fields* trailers() const noexcept override {
    return answer_trailers.size() != 0 ? &answer_trailers : nullptr;
  }

  std::string log, body, answer;
  Http2Fields answer_trailers;
  bool answer_ends = true;
  bool scarce = false;  // true: on_field() throws std::bad_alloc
};

class Events final : public Http2Events {
 public:
  [[nodiscard]] Http2StreamEvents* on_stream(std::int32_t id) override {
    if (refuses) return nullptr;
    streams[id].scarce = scarce;
    return &streams[id];
  }
  void on_cheap_frame(Http2CheapFrame frame) override { cheap.push_back(frame); }
  void on_pong() override { ++pongs; }
  void on_failure() noexcept override { ++failures; }

  std::map<std::int32_t, Stream> streams;
  std::vector<Http2CheapFrame> cheap;
  int pongs = 0;
  int failures = 0;
  bool refuses = false;
  bool scarce = false;
};

class Http2SessionTest : public ::testing::Test {
 protected:
  static constexpr Http2Limits kLimits{
      .max_streams = 5, .stream_window = 20'000, .connection_window = 70'000, .max_head = 3000};
  static constexpr std::size_t kMost = 1 << 20;

  // Replaces the client by a new client. For the parameters, see Http2Client.
  void use(bool strict, bool windows) { client.emplace(strict, windows); }
  // Moves octets in both directions until neither side has octets to send. Returns false if the connection is
  // broken.
  bool exchange() {
    for (;;) {
      const auto to_weir = client->take();
      if (!to_weir.empty() && !session.receive(to_weir)) return false;
      std::string to_client;
      session.write(to_client, kMost);
      if (to_weir.empty() && to_client.empty()) return true;
      EXPECT_TRUE(client->give(to_client));
    }
  }
  // Sends the head of an answer with this status.
  void answer(std::int32_t id, bool has_body, unsigned status = 200) {
    Http2Fields fields;
    fields.add_status(status);
    fields.add("Server", "weir");
    session.send_head(id, fields, has_body);
  }
  // Returns the cheap frames (frames that advance no request) that the session reported since the last call.
  std::vector<Http2CheapFrame> cheap() { return std::exchange(events.cheap, {}); }

  Events events;
  Http2Session session{events, kLimits};
  std::optional<Http2Client> client{std::in_place};
};

TEST_F(Http2SessionTest, AnnouncesSupportForWebSockets) {
  ASSERT_TRUE(exchange());
  EXPECT_EQ(nghttp2_session_get_remote_settings(client->session(), NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL),
            1U);
}

TEST_F(Http2SessionTest, AnnouncesItsLimitsInSettings) {
  ASSERT_TRUE(exchange());
  const auto announced = [this](nghttp2_settings_id id) {
    return nghttp2_session_get_remote_settings(client->session(), id);
  };
  EXPECT_EQ(announced(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS), kLimits.max_streams);
  EXPECT_EQ(announced(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE), kLimits.stream_window);
  EXPECT_EQ(announced(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE), kLimits.max_head);
  EXPECT_EQ(nghttp2_session_get_remote_window_size(client->session()),
            static_cast<std::int32_t>(kLimits.connection_window));
}

TEST_F(Http2SessionTest, ReportsARequest) {
  const auto id = client->request({{"accept", "*/*"}});
  ASSERT_TRUE(exchange());
  EXPECT_EQ(events.streams.at(id).log,
            ":method=GET\n:scheme=http\n:path=/\n:authority=a\naccept=*/*\nhead\nend\n");
}

TEST_F(Http2SessionTest, ReportsTheHeadBeforeTheBodyAndTheEndOnlyOnce) {
  const auto id = client->request({}, "hello", false);
  ASSERT_TRUE(exchange());
  EXPECT_THAT(events.streams.at(id).log, ::testing::EndsWith("head\n"));
  EXPECT_EQ(events.streams.at(id).body, "hello");
  const auto ended = client->request({}, "all");
  ASSERT_TRUE(exchange());
  EXPECT_THAT(events.streams.at(ended).log, ::testing::EndsWith("head\nend\n"));
  EXPECT_EQ(events.streams.at(ended).body, "all");
}

TEST_F(Http2SessionTest, DoesNotReportTheTrailersOfARequest) {
  const auto id = client->request({}, "body");
  client->set_trailers(id, {{"x-sum", "1"}});
  ASSERT_TRUE(exchange());
  EXPECT_EQ(events.streams.at(id).log, ":method=POST\n:scheme=http\n:path=/\n:authority=a\nhead\nend\n");
  EXPECT_EQ(events.streams.at(id).body, "body");
}

TEST_F(Http2SessionTest, SendsAnAnswerWithABody) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  events.streams.at(id).answer = std::string(50'000, 'x');
  answer(id, true);
  ASSERT_TRUE(exchange());
  const auto& got = client->answers.at(id);
  EXPECT_EQ(got.heads, ":status=200\nserver=weir\n\n");
  EXPECT_EQ(got.body, std::string(50'000, 'x'));
  EXPECT_EQ(got.closed, 0U);
  EXPECT_THAT(events.streams.at(id).log, HasSubstr("end\nclosed 0\n"));
}

TEST_F(Http2SessionTest, SendsAnAnswerWithoutABody) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  answer(id, false, 204);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).heads, ":status=204\nserver=weir\n\n");
  EXPECT_TRUE(client->answers.at(id).ended);
  EXPECT_EQ(client->answers.at(id).closed, 0U);
}

TEST_F(Http2SessionTest, SendsTrailersAfterTheBody) {
  for (const char* const body : {"hello", ""}) {
    const auto id = client->request();
    ASSERT_TRUE(exchange());
    auto& stream = events.streams.at(id);
    stream.answer = body;
    stream.answer_trailers.add("grpc-status", "0");
    answer(id, true);
    ASSERT_TRUE(exchange());
    const auto& got = client->answers.at(id);
    EXPECT_EQ(got.heads, ":status=200\nserver=weir\n\ngrpc-status=0\n\n");
    EXPECT_EQ(got.body, body);
    EXPECT_EQ(got.closed, 0U);
  }
}

TEST_F(Http2SessionTest, SendsInterimAnswersBeforeTheFinalAnswer) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  Http2Fields early;
  early.add_status(103);
  early.add("Link", "</a>");
  session.send_interim(id, early);
  answer(id, false);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).heads, ":status=103\nlink=</a>\n\n:status=200\nserver=weir\n\n");
}

TEST_F(Http2SessionTest, SendsHeadsLargerThanOneFrame) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  Http2Fields fields;
  fields.add_status(200);
  for (int i = 0; i < 40; ++i) fields.add("x-" + std::to_string(i), std::string(3000, '\x7e'));
  session.send_head(id, fields, false);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers[id].heads.size(), fields.octets() + 2 * fields.size() + 1);
  EXPECT_EQ(client->answers[id].closed, 0U);
}

TEST_F(Http2SessionTest, PausedAnswerBodyContinuesOnlyAfterResumeWasCalled) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  auto& stream = events.streams.at(id);
  stream.answer_ends = false;
  answer(id, true);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).body, "");
  stream.answer = "one";
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).body, "") << "resume() was not called";
  session.resume(id);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).body, "one");
  stream.answer_ends = true;
  session.resume(id);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).closed, 0U);
}

TEST_F(Http2SessionTest, WriteAddsAtMostOneFrameMoreThanTheCallerAskedFor) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  events.streams.at(id).answer = std::string(60'000, 'x');
  answer(id, true);
  constexpr std::size_t kFrame = (16 << 10) + 9;  // the largest frame
  std::string out;
  session.write(out, 1000);
  EXPECT_LT(out.size(), 1000 + kFrame);
  const auto before = out.size();
  session.write(out, before);
  EXPECT_EQ(out.size(), before);
  ASSERT_TRUE(client->give(out));
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).body.size(), 60'000U);
}

TEST_F(Http2SessionTest, SendsABodyOnlyAsFarAsTheClientsWindowsPermit) {
  use(true, false);
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  auto& stream = events.streams.at(id);
  stream.answer = std::string(100'000, 'x');
  answer(id, true);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).body.size(), 65'535U);
  EXPECT_EQ(stream.answer.size(), 100'000U - 65'535U) << "the codec has taken no more than it sent";
  client->open_windows(id, 10'000);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).body.size(), 75'535U);
  client->open_windows(id, 100'000);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).closed, 0U);
}

TEST_F(Http2SessionTest, StreamWhoseWindowIsEmptyDelaysNoOtherStream) {
  use(true, false);
  const auto slow = client->request(), fast = client->request();
  nghttp2_submit_window_update(client->session(), 0, 0, 1'000'000);  // the connection's window
  ASSERT_TRUE(exchange());
  events.streams.at(slow).answer = std::string(100'000, 's');
  answer(slow, true);
  ASSERT_TRUE(exchange());
  events.streams.at(fast).answer = "fast";
  answer(fast, true);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(slow).body.size(), 65'535U);
  EXPECT_EQ(client->answers.at(fast).body, "fast");
}

TEST_F(Http2SessionTest, ClientCannotSendMoreThanTheWindowOfAStream) {
  ASSERT_TRUE(exchange());  // the client receives weir's SETTINGS
  const auto id = client->request({}, std::string(100'000, 'x'));
  ASSERT_TRUE(exchange());
  auto& stream = events.streams.at(id);
  EXPECT_EQ(stream.body.size(), kLimits.stream_window);
  session.consume(id, 15'000);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(stream.body.size(), kLimits.stream_window + 15'000);
  while (stream.body.size() < 100'000) {
    const auto before = stream.body.size();
    session.consume(id, 15'000);
    ASSERT_TRUE(exchange());
    ASSERT_GT(stream.body.size(), before);
  }
  EXPECT_THAT(stream.log, HasSubstr("end\n"));
}

TEST_F(Http2SessionTest, ClientCannotSendMoreThanTheWindowOfTheConnection) {
  ASSERT_TRUE(exchange());
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(client->request({}, std::string(20'000, 'x')));
  ASSERT_TRUE(exchange());
  const auto held = [&] {
    std::size_t size = 0;
    for (const auto& [id, stream] : events.streams) size += stream.body.size();
    return size;
  };
  EXPECT_EQ(held(), kLimits.connection_window);
  for (const auto id : ids) session.consume(id, events.streams.at(id).body.size());
  ASSERT_TRUE(exchange());
  EXPECT_EQ(held(), 100'000U);
}

// weir must return the octets of refused and reset streams to the window of the connection, so that the
// client can still send on other streams.
TEST_F(Http2SessionTest, DataOfRefusedStreamsDoNotUseUpTheConnectionWindow) {
  events.refuses = true;
  for (int i = 0; i < 20; ++i) {
    client->request({}, std::string(20'000, 'x'));
    ASSERT_TRUE(exchange());
  }
  events.refuses = false;
  const auto id = client->request({}, std::string(20'000, 'x'));
  ASSERT_TRUE(exchange());
  EXPECT_EQ(events.streams.at(id).body.size(), 20'000U);
}

TEST_F(Http2SessionTest, ClientThatHasNotReadTheSettingsCannotSendMoreThan64KiB) {
  const auto id = client->request({}, std::string(60'000, 'x'));
  ASSERT_TRUE(exchange()) << "the client sends before it knows of the settings";
  EXPECT_LE(events.streams.at(id).body.size(), 65'535U);
}

TEST_F(Http2SessionTest, ReportsAResetByTheClient) {
  const auto id = client->request({}, "x", false);
  ASSERT_TRUE(exchange());
  cheap();
  client->reset(id);
  ASSERT_TRUE(exchange());
  EXPECT_THAT(events.streams.at(id).log, HasSubstr("head\nclosed 8\n"));
  EXPECT_THAT(cheap(), ElementsAre(Http2CheapFrame::Reset));
}

TEST_F(Http2SessionTest, ResetsAStream) {
  const auto id = client->request(), other = client->request();
  ASSERT_TRUE(exchange());
  events.streams.at(id).answer_ends = false;
  answer(id, true);
  session.reset(id, Http2Error::Internal);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).closed, static_cast<std::uint32_t>(Http2Error::Internal));
  EXPECT_THAT(events.streams.at(id).log, HasSubstr("closed 2\n"));
  answer(other, false);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(other).closed, 0U);
}

TEST_F(Http2SessionTest, CallsForAStreamThatIsAlreadyClosedDoNothing) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  client->reset(id);
  ASSERT_TRUE(exchange());
  answer(id, true);
  session.send_interim(id, {});
  session.resume(id);
  session.reset(id, Http2Error::Cancel);
  ASSERT_TRUE(exchange());
  EXPECT_THAT(events.streams.at(id).log, HasSubstr("end\nclosed 8\n"));
}

TEST_F(Http2SessionTest, RefusesAStream) {
  events.refuses = true;
  const auto id = client->request({{"x", "y"}}, "body");
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).closed, static_cast<std::uint32_t>(Http2Error::RefusedStream));
  EXPECT_THAT(events.streams, IsEmpty());
}

TEST_F(Http2SessionTest, ReportsEachKindOfCheapFrame) {
  const auto id = client->request({}, "x", false);
  ASSERT_TRUE(exchange());
  EXPECT_THAT(cheap(), ElementsAre(Http2CheapFrame::Settings)) << "an acknowledgement is not cheap";
  auto* const peer = client->session();
  nghttp2_submit_ping(peer, 0, nullptr);
  nghttp2_submit_window_update(peer, 0, 0, 1);
  nghttp2_priority_spec priority;
  nghttp2_priority_spec_init(&priority, 0, 16, 0);
  nghttp2_submit_priority(peer, 0, 99, &priority);
  nghttp2_submit_settings(peer, 0, nullptr, 0);
  ASSERT_TRUE(exchange());
  auto seen = cheap();
  std::sort(seen.begin(), seen.end());
  EXPECT_THAT(seen, ElementsAre(Http2CheapFrame::Settings, Http2CheapFrame::Ping, Http2CheapFrame::Priority,
                                Http2CheapFrame::WindowUpdate));
  EXPECT_EQ(client->pongs, 1);
  const std::string empty{"\0\0\0\0\0\0\0\0", 8};  // DATA that does not end the stream
  ASSERT_TRUE(session.receive(empty + static_cast<char>(id)));
  EXPECT_THAT(cheap(), ElementsAre(Http2CheapFrame::EmptyData));
  ASSERT_TRUE(session.receive(std::string("\0\0\x10\7\0\0\0\0\0", 9) + std::string(16, '\0')));  // GOAWAY
  EXPECT_THAT(cheap(), ElementsAre(Http2CheapFrame::Other));
}

// Returns a frame with a content of 5 octets on stream 0.
std::string frame_of_type(unsigned type) {
  return std::string("\0\0\5", 3) + static_cast<char>(type) + std::string(5, '\0') + "hello";
}

TEST_F(Http2SessionTest, IgnoresFramesOfUnknownTypesButReportsThem) {
  ASSERT_TRUE(exchange());
  for (const unsigned type : {0x0aU, 0x0cU, 0x7fU, 0xbeU, 0xffU}) {
    SCOPED_TRACE(type);
    cheap();
    ASSERT_TRUE(session.receive(frame_of_type(type)));
    EXPECT_THAT(cheap(), ElementsAre(Http2CheapFrame::Other));
  }
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  EXPECT_THAT(events.streams.at(id).log, HasSubstr("head\nend\n"));
  EXPECT_EQ(events.failures, 0);
}

TEST_F(Http2SessionTest, ServerThatSendsTooManyUnknownFramesWithoutAResponseLosesItsConnection) {
  Http2Session asking{events, kLimits, Http2Side::Client};
  Http2Fields fields;
  fields.add(":method", "GET");
  fields.add(":scheme", "http");
  fields.add(":path", "/");
  fields.add(":authority", "a");
  Stream stream;
  ASSERT_TRUE(asking.request(fields, false, stream));
  std::string sent;
  asking.write(sent, kMost);
  ASSERT_TRUE(asking.receive(std::string("\0\0\0\4\0\0\0\0\0", 9)));  // SETTINGS
  std::string most;
  for (std::uint32_t i = 0; i < Http2Session::kMostUnknown; ++i) most += frame_of_type(0xbe);
  const std::string head{"\0\0\1\1\4\0\0\0\1\x88", 10};  // HEADERS: 200
  ASSERT_TRUE(asking.receive(most + head + most));
  EXPECT_THAT(stream.log, HasSubstr("head"));
  asking.write(sent, kMost);
  EXPECT_EQ(events.failures, 0);
  static_cast<void>(asking.receive(frame_of_type(0xbe)));
  asking.write(sent, kMost);
  EXPECT_EQ(events.failures, 1) << "the connection ends with a GOAWAY";
  EXPECT_FALSE(asking.accepts_requests());
}

TEST_F(Http2SessionTest, MalformedRequestIsResetAndReportedAsAFault) {
  use(false, true);
  const std::vector<Http2Client::Lines> bad = {{{"x", " a"}},          {{"connection", "close"}},
                                               {{"te", "gzip"}},       {{":path", "/twice"}},
                                               {{"x", "a\r\nb: c"}},   {{"content-length", "7"}},
                                               {{"upgrade", "h2c"}},   {{"transfer-encoding", "chunked"}},
                                               {{":protocol", "web"}}, {{"x y", "z"}}};
  for (const auto& lines : bad) {
    SCOPED_TRACE(lines.front().first + "=" + lines.front().second);
    ASSERT_TRUE(exchange());
    cheap();
    const auto id = client->request(lines);
    ASSERT_TRUE(exchange());
    EXPECT_THAT(cheap(), ElementsAre(Http2CheapFrame::Fault));
    EXPECT_EQ(client->answers.at(id).closed, static_cast<std::uint32_t>(Http2Error::Protocol));
    EXPECT_EQ(events.streams[id].log.find("head\n"), std::string::npos) << events.streams[id].log;
  }
}

TEST_F(Http2SessionTest, ReportsTheAnswerToAPing) {
  ASSERT_TRUE(exchange());
  session.ping();
  ASSERT_TRUE(exchange());
  EXPECT_EQ(events.pongs, 1);
  EXPECT_THAT(cheap(), ElementsAre(Http2CheapFrame::Settings, Http2CheapFrame::Ping))
      << "a client may send unrequested acknowledgements";
}

TEST_F(Http2SessionTest, EndOfAConnectionIsAnnouncedBeforeNewStreamsAreIgnored) {
  const auto first = client->request();
  ASSERT_TRUE(exchange());
  session.announce_end();
  ASSERT_TRUE(exchange());
  EXPECT_THAT(client->goaways, ElementsAre(Http2Client::Goaway{0x7fffffff, 0}));
  EXPECT_FALSE(session.is_over());
  session.go_away(Http2Error::None);
  ASSERT_TRUE(exchange());
  EXPECT_THAT(client->goaways,
              ElementsAre(Http2Client::Goaway{0x7fffffff, 0}, Http2Client::Goaway{first, 0}));
  EXPECT_FALSE(session.is_over()) << "a stream is open";
  answer(first, false);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(first).closed, 0U);
  EXPECT_TRUE(session.is_over());
}

// The session must detect this fault itself, because nghttp2 would ignore a stream with a lower ID than an
// earlier stream.
TEST_F(Http2SessionTest, StreamIdOutOfOrderEndsTheConnection) {
  ASSERT_TRUE(exchange());
  ASSERT_GE(nghttp2_session_set_next_stream_id(client->session(), 9), 0);
  const auto id = client->request({}, "x", false);
  ASSERT_TRUE(exchange());
  ASSERT_EQ(id, 9);
  const std::string head{"\0\0\3\1\5\0\0\0\5\x82\x86\x84", 12};  // GET / on stream 5
  EXPECT_TRUE(session.receive(head));
  std::string out;
  session.write(out, kMost);
  ASSERT_TRUE(client->give(out));
  EXPECT_THAT(client->goaways, ElementsAre(Http2Client::Goaway{9, 1}));
  EXPECT_EQ(events.streams.count(5), 0U);
}

TEST_F(Http2SessionTest, StreamThatTheClientOpensBeforeItReadsTheGoawayIsServed) {
  ASSERT_TRUE(exchange());
  const auto id = client->request();
  const auto crossing = client->take();
  session.announce_end();
  std::string out;
  session.write(out, kMost);
  ASSERT_TRUE(session.receive(crossing));
  EXPECT_EQ(events.streams.count(id), 1U);
  session.go_away(Http2Error::None);
  ASSERT_TRUE(client->give(out));
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->goaways.back(), (Http2Client::Goaway{id, 0}));
  answer(id, false);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(id).closed, 0U);
}

TEST_F(Http2SessionTest, StreamOpenedAfterTheLastGoawayIsIgnored) {
  ASSERT_TRUE(exchange());
  const auto open = client->request({}, "x", false);
  ASSERT_TRUE(exchange());
  const auto late = client->request();
  const auto crossing = client->take();
  session.go_away(Http2Error::None);
  std::string out;
  session.write(out, kMost);
  ASSERT_TRUE(session.receive(crossing));
  EXPECT_EQ(events.streams.count(late), 0U);
  EXPECT_EQ(events.streams.count(open), 1U);
}

TEST_F(Http2SessionTest, StreamThatAGoawayExcludesIsClosedWithoutAReset) {
  const auto kept = client->request();
  const auto excluded = client->request({}, "x", false);
  ASSERT_TRUE(exchange());
  const auto late = client->request();
  const auto crossing = client->take();
  session.go_away_after(kept);
  EXPECT_FALSE(session.excludes(kept));
  EXPECT_TRUE(session.excludes(excluded));
  ASSERT_TRUE(session.receive(crossing)) << "the GOAWAY was not written yet";
  EXPECT_EQ(events.streams.count(late), 0U);
  ASSERT_TRUE(exchange());
  EXPECT_THAT(events.streams.at(excluded).log, HasSubstr("closed 7\n"));
  EXPECT_THAT(cheap(), Not(Contains(Http2CheapFrame::Refused))) << "no RST_STREAM was sent";
  EXPECT_EQ(client->goaways.back(), (Http2Client::Goaway{kept, 0}));
  EXPECT_EQ(client->answers.at(late).closed, static_cast<std::uint32_t>(Http2Error::RefusedStream));
  answer(kept, false);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(client->answers.at(kept).closed, 0U);
  EXPECT_TRUE(session.is_over());
}

TEST_F(Http2SessionTest, EndsAllStreamsIfTheConnectionFails) {
  const auto id = client->request();
  ASSERT_TRUE(exchange());
  session.go_away(Http2Error::EnhanceYourCalm);
  ASSERT_TRUE(exchange());
  EXPECT_THAT(client->goaways, ElementsAre(Http2Client::Goaway{id, 11}));
  EXPECT_TRUE(session.is_over());
  EXPECT_EQ(events.failures, 1);
}

TEST_F(Http2SessionTest, OctetsThatAreNotHttp2EndTheConnection) {
  EXPECT_FALSE(session.receive("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
}

TEST_F(Http2SessionTest, ErrorOfTheWholeConnectionEndsTheConnection) {
  ASSERT_TRUE(exchange());
  cheap();
  const std::string data{"\0\0\1\0\0\0\0\0\7x", 10};  // DATA on a stream that was never opened
  EXPECT_TRUE(session.receive(data));
  std::string out;
  session.write(out, kMost);
  ASSERT_TRUE(client->give(out));
  EXPECT_THAT(client->goaways, ElementsAre(Http2Client::Goaway{0, 1}));
  EXPECT_TRUE(session.is_over());
  EXPECT_EQ(events.failures, 1);
}

// A client does not know the maximum number of streams before it receives weir's SETTINGS. So weir must not
// treat more streams as a fault.
TEST_F(Http2SessionTest, RefusesStreamsBeyondTheMaximumNumber) {
  std::vector<std::int32_t> ids;
  for (std::uint32_t i = 0; i < kLimits.max_streams + 2; ++i) ids.push_back(client->request());
  ASSERT_TRUE(exchange());
  EXPECT_EQ(events.streams.size(), kLimits.max_streams);
  EXPECT_EQ(std::count(events.cheap.begin(), events.cheap.end(), Http2CheapFrame::Refused), 2);
  EXPECT_EQ(std::count(events.cheap.begin(), events.cheap.end(), Http2CheapFrame::Fault), 0);
  EXPECT_EQ(client->answers.at(ids.back()).closed, static_cast<std::uint32_t>(Http2Error::RefusedStream));
}

TEST_F(Http2SessionTest, ReportsThatMemoryRanOut) {
  events.scarce = true;
  client->request();
  EXPECT_THROW((void)exchange(), std::bad_alloc);
}

}  // namespace
}  // namespace weir::http
