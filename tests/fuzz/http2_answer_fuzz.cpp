// Fuzzes the client's end of an HTTP/2 connection with any bytes of a server. Each answer becomes HTTP/1.1
// text, as in Http2ServerStream. That text must be one answer, or the parser of heads must reject it.
//
// The first byte of the input chooses the size of the pieces in which the rest arrives, and whether the
// server's SETTINGS come first. The second byte chooses the requests, and how fast their clients read.
#include "fuzz/input.hpp"

#include "weir/http/chunked.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/http/http2_session.hpp"

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

constexpr std::size_t kMostHead = 4000;
constexpr std::size_t kWindow = 20'000;
constexpr http::Http2Limits kLimits{
    .stream_window = kWindow, .connection_window = 0x7fffffff, .max_head = kMostHead};
// A server may send this many octets on each stream before it knows kLimits (RFC 9113 §6.9.2).
constexpr std::size_t kFirstWindow = 65'535;
constexpr std::size_t kMostUnconsumed = std::max(kFirstWindow, kWindow);
// The bound on the text that waits for a reader. on_head() adds no head once more than kWindow + 8 *
// unconsumed bytes wait, and `unconsumed` is at most kMostUnconsumed. The last summand is room for two more
// heads, each of at most 2 * kMostHead + 200 bytes.
constexpr std::size_t kMostText = kWindow + 8 * kMostUnconsumed + 4 * (kMostHead + 100);

constexpr std::size_t kOpen = 4;  // requests that are open at once
constexpr std::size_t kMostRequests = 64;

class Answer final : public http::Http2StreamEvents {
 public:
  explicit Answer(bool to_head) : to_head_(to_head), text_(to_head, kMostHead) {}

  void on_field(std::string_view name, std::string_view value) override {
    require(!closed_, "a closed stream gets no fields");
    require(value.find_first_of(std::string_view("\0\r\n", 3)) == std::string_view::npos,
            "no line ends in values");
    require(name.find_first_of(std::string_view("\0\r\n ", 4)) == std::string_view::npos,
            "no line ends in names");
    text_.add(name, value);
  }
  void on_head() override {
    require(!closed_ && !ended_, "a head comes before the end");
    too_fast = too_fast || waiting_ > kWindow + 8 * unconsumed;
    if (too_fast) return;
    const auto before = whole_.size();
    text_.end_fields(whole_);
    note_text(before);
  }
  void on_data(std::string_view octets) override {
    require(!closed_ && !ended_, "data come before the end");
    const auto before = whole_.size();
    text_.add_body(octets, whole_);
    note_text(before);
    body_ += octets;
    unconsumed += octets.size();
    require(unconsumed <= kMostUnconsumed, "the window of a stream holds");
  }
  void on_end() override {
    require(!closed_ && !ended_, "an answer ends once");
    text_.end(whole_);
    ended_ = true;
    if (!too_fast) check_answer();
  }
  void on_end_sent() override {}
  void on_closed(http::Http2Error) override {
    require(!closed_, "a stream closes once");
    closed_ = true;
  }
  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& ended) noexcept override {
    const auto size = std::min(room, left_);
    std::fill_n(at, size, 'x');
    left_ -= size;
    ended = left_ == 0;
    return size;
  }
  [[nodiscard]] const http::Http2Fields* trailers() const noexcept override { return nullptr; }

  // Reads 1/`part` of the waiting text. Returns by how many octets the flow-control window may open again.
  std::size_t read(std::size_t part) {
    const auto size = waiting_ / part;
    const auto consumed = waiting_ == 0 ? unconsumed : unconsumed * size / waiting_;
    waiting_ -= size;
    unconsumed -= consumed;
    return consumed;
  }
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }

  std::int32_t id = 0;
  std::size_t unconsumed = 0;
  bool too_fast = false;  // true if the server sends interim heads faster than the client reads them

 private:
  void note_text(std::size_t before) {
    waiting_ += whole_.size() - before;
    require(waiting_ <= kMostText, "the text that waits is bounded");
  }
  // Reads the whole text as the exchange does: interim heads, the final head, the body in chunks.
  void check_answer() const {
    std::string_view rest = whole_;
    http::ResponseHead head;
    do {
      const auto size = http::find_answer_head_end(rest);
      if (size == 0) return require(rest.size() > kMostHead, "only a head that is too large has no end");
      if (http::parse_response_head(rest.substr(0, size), to_head_, head)) return;
      rest.remove_prefix(size);
    } while (head.status < 200);
    require(head.status <= 999, "a status has three digits");
    if (to_head_ || head.status == 204 || head.status == 304)
      return require(rest.empty() && body_.empty(), "nothing follows a head without a body");
    std::string decoded;
    for (http::ChunkDecoder decoder(http::ChunkDecoder::Sender::Server); !decoder.done();) {
      const auto piece = decoder.next(rest);
      if (piece.status == http::ChunkDecoder::Status::Bad) return;  // the trailers are too large
      require(piece.status != http::ChunkDecoder::Status::NeedMore, "the body ends");
      decoded += piece.data;
      rest.remove_prefix(piece.used);
    }
    require(rest.empty(), "nothing follows the body");
    require(decoded == body_, "the text has the body that the server sent");
  }

  const bool to_head_;
  http::Http2ResponseText text_;
  std::string whole_, body_;
  std::size_t waiting_ = 0;   // octets of the text that were not read yet
  std::size_t left_ = 1'000;  // octets of the request's body that are still to be sent
  bool ended_ = false, closed_ = false;
};

class Client final : public http::Http2Events {
 public:
  explicit Client(unsigned kind) : kind_(kind) { open(); }

  // Returns true if the connection may continue; false if it must end.
  bool receive(std::string_view octets) {
    const bool sound = session_.receive(octets);
    for (auto& answer : answers_) {
      if (answer.is_closed()) continue;
      if (answer.too_fast) session_.reset(answer.id, http::Http2Error::EnhanceYourCalm);
      if (const auto consumed = answer.read(1 + (kind_ & 3U)); consumed != 0)
        session_.consume(answer.id, consumed);
    }
    if ((kind_ & 64U) != 0) leave();
    open();
    write();
    return sound && !session_.is_over();
  }

 private:
  // Opens requests until kOpen are open. Every second request has a body, every third has the method HEAD.
  void open() {
    const auto open_now = [this] {
      return std::count_if(answers_.begin(), answers_.end(),
                           [](const Answer& each) { return !each.is_closed(); });
    };
    while (static_cast<std::size_t>(open_now()) < kOpen && answers_.size() < kMostRequests &&
           session_.accepts_requests()) {
      const auto number = answers_.size();
      const bool to_head = (kind_ & 16U) != 0 && number % 3 == 2;
      const bool has_body = !to_head && (kind_ & 32U) != 0 && number % 2 == 1;
      http::Http2Fields fields;
      fields.add(":method", to_head ? "HEAD" : has_body ? "POST" : "GET");
      fields.add(":scheme", "http");
      fields.add(":path", "/");
      fields.add(":authority", "a");
      auto& answer = answers_.emplace_back(to_head);
      const auto id = session_.request(fields, has_body, answer);
      require(id.has_value(), "the session accepts requests");
      answer.id = *id;
    }
    write();
  }
  // Gives up the first open request, like a client that leaves. Consumes the octets of its response.
  void leave() {
    const auto first =
        std::find_if(answers_.begin(), answers_.end(), [](const Answer& each) { return !each.is_closed(); });
    if (first == answers_.end()) return;
    session_.detach(first->id);
    if (first->unconsumed != 0) session_.consume(first->id, first->unconsumed);
    session_.reset(first->id, http::Http2Error::Cancel);
    first->on_closed(http::Http2Error::Cancel);
  }
  void write() {
    for (int turns = 0;; ++turns) {
      std::string out;
      session_.write(out, 64 << 10);
      if (out.empty()) return;
      require(turns < 1000, "write() ends");
    }
  }
  [[nodiscard]] http::Http2StreamEvents* on_stream(std::int32_t) override { return nullptr; }
  void on_cheap_frame(http::Http2CheapFrame) override {}
  void on_pong() override {}
  void on_failure() noexcept override {}

  const unsigned kind_;
  std::deque<Answer> answers_;
  http::Http2Session session_{*this, kLimits, http::Http2Side::Client};
};

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  constexpr std::size_t kPieces[] = {1 << 20, 1, 9, 100};
  constexpr std::string_view kSettings{"\0\0\0\4\0\0\0\0\0", 9};
  if (size < 2) return 0;
  const auto piece = kPieces[bytes[0] & 3U];
  std::string input;
  if ((bytes[0] & 4U) == 0) input.append(kSettings);
  input.append(reinterpret_cast<const char*>(bytes) + 2, size - 2);
  Client client(bytes[1]);
  for (std::string_view rest = input; !rest.empty();) {
    const std::string part(rest.substr(0, piece));  // a copy, so that ASan sees reads beyond it
    rest.remove_prefix(part.size());
    if (!client.receive(part)) break;
  }
  return 0;
}
