// Fuzzes the server's end of an HTTP/2 connection with any octets of a client. The first byte of the input
// chooses the size of the pieces in which the rest arrives, and whether the client's preface and SETTINGS
// come first. The second byte chooses how the server answers the streams.
#include "fuzz/input.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/http/http2_session.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fuzz {
namespace {

constexpr http::Http2Limits kLimits{
    .max_streams = 8, .stream_window = 20'000, .connection_window = 50'000, .max_head = 4000};
// A client may send this many octets on each stream before it knows kLimits (RFC 9113 §6.9.2).
constexpr std::size_t kFirstWindow = 65'535;
constexpr std::size_t kMostOutput = 64 << 10;

class Stream final : public http::Http2StreamEvents {
 public:
  explicit Stream(unsigned answer) : answer_(answer), left_(answer % 4 * 20'000) {}

  void on_field(std::string_view name, std::string_view value) override {
    require(!head_ && !closed_, "fields come before the end of the head");
    require(value.find_first_of(std::string_view("\0\r\n", 3)) == std::string_view::npos,
            "no line ends in values");
    require(name.find_first_of(std::string_view("\0\r\n ", 4)) == std::string_view::npos,
            "no line ends in names");
    text_.add(name, value);
  }
  void on_head() override {
    require(!head_ && !closed_, "one head");
    head_ = true;
    const auto head = text_.head(0);
    http::RequestHead parsed;
    require(head.ends_with("\r\n\r\n"), "the head is whole");
    if (text_.fault() == nullptr) (void)http::parse_request_head(head, parsed);
  }
  void on_data(std::string_view octets) override {
    require(head_ && !ended_ && !closed_, "data come after the head and before the end");
    unconsumed += octets.size();
  }
  void on_end() override {
    require(head_ && !ended_ && !closed_, "one end, after the head");
    ended_ = true;
  }
  void on_end_sent() override {}
  void on_closed(http::Http2Error) override {
    require(!closed_, "a stream closes once");
    closed_ = true;
  }
  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& ended) noexcept override {
    require(!closed_, "a closed stream gives no body");
    const auto size = std::min(room, left_);
    std::fill_n(at, size, 'x');
    left_ -= size;
    ended = left_ == 0 && !waits();
    return size;
  }
  [[nodiscard]] const http::Http2Fields* trailers() const noexcept override {
    return trailers_.size() != 0 ? &trailers_ : nullptr;
  }

  // Answers the request. A later call continues the answer. Must not be called within a callback of the
  // codec.
  void answer(http::Http2Session& session, std::int32_t id) {
    if (!head_ || closed_) return;
    if (answered_) {
      answer_ = 0;  // waits() now returns false, so give() may end the body
      return session.resume(id);
    }
    answered_ = true;
    http::Http2Fields fields;
    if ((answer_ & 4U) != 0) {
      fields.add_status(103);
      session.send_interim(id, fields);
      fields.clear();
    }
    if ((answer_ & 8U) != 0) trailers_.add("x-sum", "1");
    if ((answer_ & 16U) != 0) return session.reset(id, http::Http2Error::Internal);
    fields.add_status(200);
    session.send_head(id, fields, answer_ % 4 != 0);
  }

  std::size_t unconsumed = 0;

 private:
  [[nodiscard]] bool waits() const noexcept { return (answer_ & 32U) != 0; }

  http::Http2RequestText text_{kLimits.max_head};
  http::Http2Fields trailers_;
  unsigned answer_;
  std::size_t left_;
  bool head_ = false, ended_ = false, closed_ = false, answered_ = false;
};

class Server final : public http::Http2Events {
 public:
  explicit Server(unsigned answer) : answer_(answer) {}

  // Returns true if the connection may continue; false if it must end.
  bool receive(std::string_view octets) {
    const bool sound = session_.receive(octets);
    std::size_t held = 0;
    for (auto& [id, stream] : streams_) {
      require(stream.unconsumed <= std::max<std::size_t>(kFirstWindow, kLimits.stream_window),
              "the window of a stream holds");
      held += stream.unconsumed;
    }
    require(held <= std::max<std::size_t>(kFirstWindow, kLimits.connection_window),
            "the window of the connection holds");
    for (auto& [id, stream] : streams_) {
      stream.answer(session_, id);
      const auto half = (stream.unconsumed + 1) / 2;
      session_.consume(id, half);
      stream.unconsumed -= half;
    }
    if (streams_.size() > 6 && (answer_ & 64U) != 0) session_.announce_end();
    if (streams_.size() > 7 && (answer_ & 64U) != 0) session_.go_away(http::Http2Error::None);
    write();
    return sound;
  }
  void write() {
    for (int turns = 0;; ++turns) {
      std::string out;
      session_.write(out, kMostOutput);
      if (out.empty()) return;
      require(out.size() < kMostOutput + (17 << 10), "write() keeps its bound");
      require(turns < 1000, "write() ends");
    }
  }

 private:
  [[nodiscard]] http::Http2StreamEvents* on_stream(std::int32_t id) override {
    if ((answer_ & 128U) != 0 && streams_.size() % 3 == 2) return nullptr;
    const auto [made, fresh] = streams_.try_emplace(id, answer_ + static_cast<unsigned>(id) / 2 * 7);
    require(fresh, "each stream opens once");
    return &made->second;
  }
  void on_cheap_frame(http::Http2CheapFrame frame) override {
    // Ends the connection of a client that sends too many faulty frames, as the proxy does.
    if (frame == http::Http2CheapFrame::Fault && ++faults_ > 20)
      session_.go_away(http::Http2Error::EnhanceYourCalm);
  }
  void on_pong() override {}
  void on_failure() noexcept override {}

  const unsigned answer_;
  unsigned faults_ = 0;
  std::map<std::int32_t, Stream> streams_;
  http::Http2Session session_{*this, kLimits};
};

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  constexpr std::size_t kPieces[] = {1 << 20, 1, 9, 100};
  constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  constexpr std::string_view kSettings{"\0\0\0\4\0\0\0\0\0", 9};
  if (size < 2) return 0;
  const auto piece = kPieces[bytes[0] & 3U];
  std::string input;
  if ((bytes[0] & 4U) == 0) input.append(kPreface).append(kSettings);
  input.append(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  Server server(bytes[1]);
  for (std::string_view rest = input; !rest.empty();) {
    const std::string part(rest.substr(0, piece));  // a copy, so that ASan sees reads beyond it
    rest.remove_prefix(part.size());
    if (!server.receive(part)) break;
  }
  return 0;
}
