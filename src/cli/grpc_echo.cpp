#include "cli/grpc_echo.hpp"

#include "weir/http/grpc.hpp"
#include "weir/http/http2_session.hpp"
#include "weir/net/use_task.hpp"

#include <array>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::cli {

namespace {

using namespace std::string_view_literals;

constexpr std::size_t kReadSize = 64 << 10;
constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
// A gRPC message with two octets: field 1 (status) of HealthCheckResponse is 1 (SERVING).
constexpr std::string_view kServing = "\0\0\0\0\2\x08\1"sv;

// One call. Sends octets back as they arrive, so that messages keep their boundaries and their order.
class GrpcEchoCall final : public http::Http2StreamEvents {
 public:
  using Calls = std::map<std::int32_t, GrpcEchoCall>;

  // `calls`: the container that owns this call. At its end, the call removes itself from the container.
  GrpcEchoCall(Calls& calls, std::int32_t id, http::Http2Session& codec, bool delayed)
      : calls_(calls), id_(id), codec_(codec), delayed_(delayed) {}

  // Must be called when the delay is over.
  void end_delay() {
    delayed_ = false;
    advance();
  }

 private:
  void on_field(std::string_view name, std::string_view value) override {
    if (name == ":path") checks_health_ = value == kHealthCheck;
    if (name == "content-type") is_grpc_ = http::is_grpc_type(value);
    if (name == "x-grpc-status") status_ = value;
  }
  void on_head() override {}
  void on_data(std::string_view octets) override {
    if (checks_health_ || !is_grpc_) return codec_.consume(id_, octets.size());
    pending_ += octets;
    advance();
  }
  void on_end() override {
    ended_ = true;
    if (checks_health_ && status_ == "0") pending_ = kServing;
    advance();
  }
  void on_end_sent() override {}
  void on_closed(http::Http2Error) override { calls_.erase(id_); }

  [[nodiscard]] std::size_t give(char* at, std::size_t room, bool& ended) noexcept override {
    const auto size = pending_.copy(at, room);
    pending_.erase(0, size);
    if (!checks_health_) codec_.consume(id_, size);
    ended = ended_ && pending_.empty();
    return size;
  }
  [[nodiscard]] const http::Http2Fields* trailers() const noexcept override { return &trailers_; }

  // Sends the part of the answer that is ready: at first the head, later the octets in pending_.
  void advance() {
    if (delayed_) return;
    if (begun_) return codec_.resume(id_);
    if (!ended_ && pending_.empty()) return;
    begun_ = true;
    http::Http2Fields head;
    head.add_status(is_grpc_ ? 200 : 415);
    if (is_grpc_) head.add("content-type", "application/grpc");
    const bool has_messages = !pending_.empty();
    if (is_grpc_) (has_messages ? trailers_ : head).add("grpc-status", status_);
    codec_.send_head(id_, head, has_messages);
  }

  Calls& calls_;
  const std::int32_t id_;
  http::Http2Session& codec_;
  std::string status_ = "0";
  std::string pending_;  // octets to send; at most as many as the stream's window permits
  http::Http2Fields trailers_;
  bool delayed_;
  bool is_grpc_ = false;
  bool checks_health_ = false;
  bool ended_ = false;  // the client has sent its last message
  bool begun_ = false;  // the head of the answer was sent
};

// Both coroutines of a connection own this object, because either of them may be destroyed first.
class GrpcEchoConnection final : public http::Http2Events {
 public:
  GrpcEchoConnection(net::Stream stream, net::Executor executor, base::Duration delay)
      : stream_(std::move(stream)), wake_(executor), delay_(delay), codec_(*this, http::Http2Limits{}) {}

  [[nodiscard]] net::Task<void> read_all() {
    std::vector<char> block(kReadSize);
    while (!over_) {
      net::ErrorCode ec;
      const auto size = co_await stream_.read_some(block.data(), block.size(), ec);
      if (ec) break;
      const bool sound = codec_.receive({block.data(), size});
      wake_.cancel();
      if (!sound) co_return;  // write_all() sends the GOAWAY and ends the connection
    }
    over_ = true;
    wake_.cancel();
    stream_.cancel();
  }

  [[nodiscard]] net::Task<void> write_all() {
    std::string out;
    while (!over_) {
      end_delays();
      out.clear();
      codec_.write(out, kReadSize);
      if (!out.empty()) {
        const auto ec = co_await stream_.write(out);
        over_ = over_ || ec;
        continue;
      }
      if (codec_.is_over()) break;
      wake_.expires_at(delayed_.empty() ? Time::max() : delayed_.front().until);
      net::ErrorCode ignored;
      co_await wake_.async_wait(net::use_task(ignored));
    }
    over_ = true;
    stream_.cancel();
  }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Delayed {
    Time until;
    std::int32_t id;
  };

  [[nodiscard]] http::Http2StreamEvents* on_stream(std::int32_t id) override {
    const bool delayed = delay_.count() > 0;
    if (delayed) delayed_.push_back({std::chrono::steady_clock::now() + delay_, id});
    return &calls_.try_emplace(id, calls_, id, codec_, delayed).first->second;
  }
  void on_cheap_frame(http::Http2CheapFrame) override {}
  void on_pong() override {}
  void on_failure() noexcept override {}

  void end_delays() {
    while (!delayed_.empty() && delayed_.front().until <= std::chrono::steady_clock::now()) {
      if (const auto found = calls_.find(delayed_.front().id); found != calls_.end())
        found->second.end_delay();
      delayed_.pop_front();
    }
  }

  net::Stream stream_;
  net::Timer wake_;  // expires when write_all() has work
  const base::Duration delay_;
  http::Http2Session codec_;
  GrpcEchoCall::Calls calls_;
  std::deque<Delayed> delayed_;  // ordered by time
  bool over_ = false;
};

net::Task<void> write_all(std::shared_ptr<GrpcEchoConnection> connection) {
  co_await connection->write_all();
}

}  // namespace

net::Task<void> serve_grpc(net::Stream stream, net::Executor executor, base::Duration delay) {
  const auto connection = std::make_shared<GrpcEchoConnection>(std::move(stream), executor, delay);
  net::spawn(executor, write_all(connection), [](const std::exception_ptr&) {});
  co_await connection->read_all();
}

}  // namespace weir::cli
