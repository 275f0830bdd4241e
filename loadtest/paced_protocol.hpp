// Asks a server at a constant rate, over HTTP/1.1 or by gRPC over HTTP/2, and measures how long the answers
// take. ask.py compiles and runs it.
//
//   ask_paced PORT CONNECTIONS RATE SECONDS h1 <REQUEST
//   ask_paced PORT CONNECTIONS RATE SECONDS PATH <MESSAGE
//
// The load is open: each request is due at a time that does not depend on earlier answers. A request that
// must wait for a free connection is measured from when it was due. RATE is in requests a second; 0 sends a
// request on each connection as soon as the connection's last answer has arrived. A connection has one
// request at a time. The first tenth of the time does not count. Prints one line of JSON. h2load --rps sends
// in bursts, because its timers tick in milliseconds.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr std::chrono::seconds kPatience{5};  // the load has failed if nothing arrives for this long

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "ask_paced: %s%s%s\n", what, errno != 0 ? ": " : "",
               errno != 0 ? std::strerror(errno) : "");
  std::exit(1);
}

// Frames of HTTP/2 (RFC 9113 §4.1) and their flags.
enum : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoaway = 7,
  kWindow = 8
};
enum : std::uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4 };
constexpr std::size_t kFrameHead = 9;

std::string number(std::uint32_t value) {
  const char octets[] = {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                         static_cast<char>(value >> 8), static_cast<char>(value)};
  return {octets, sizeof octets};
}
std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  auto octets = number(static_cast<std::uint32_t>(payload.size())).substr(1);
  octets += static_cast<char>(type);
  octets += static_cast<char>(flags);
  return octets.append(number(stream)).append(payload);
}
std::string text(std::string_view octets) {
  return std::string(1, static_cast<char>(octets.size())).append(octets);
}

// Returns the fields of a call, as HPACK literals (RFC 7541 §6.2.2). Indexes are those of HPACK's static
// table.
std::string call_fields(std::string_view path) {
  return std::string("\x83\x86", 2) + "\x04" + text(path) + "\x01" + text("localhost") + "\x0f\x10" +
         text("application/grpc") + std::string(1, '\0') + text("te") + text("trailers");
}

// The octets that a client sends over HTTP/1.1 or HTTP/2, and the search for the end of an answer.
class Protocol {
 public:
  Protocol(std::string_view kind, std::string octets) : http2_(kind != "h1"), octets_(std::move(octets)) {
    if (http2_) fields_ = call_fields(kind);
  }
  [[nodiscard]] std::string opening() const {
    if (!http2_) return {};
    return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, {}) +
           frame(kWindow, 0, 0, number(1U << 30));
  }
  [[nodiscard]] std::string request(std::uint32_t stream) const {
    if (!http2_) return octets_;
    return frame(kHeaders, kEndHeaders, stream, fields_) + frame(kData, kEndStream, stream, octets_);
  }
  // Removes the complete answer or the complete frames at the front of `received`. Returns true if they ended
  // an answer. Appends to `reply` the frames that HTTP/2 requires of the client, such as acknowledgements.
  bool take_answer(std::string& received, std::string& reply) {
    return http2_ ? take_frames(received, reply) : take_response(received);
  }

 private:
  static bool take_response(std::string& received) {
    const auto end = received.find("\r\n\r\n");
    if (end == received.npos) return false;
    if (!received.starts_with("HTTP/1.1 200")) fail(received.c_str());
    const auto length = received.find("Content-Length: ");
    if (length > end) fail("an answer has no Content-Length");
    const auto size = end + 4 + std::strtoul(received.c_str() + length + 16, nullptr, 10);
    if (received.size() < size) return false;
    received.erase(0, size);
    return true;
  }
  bool take_frames(std::string& received, std::string& reply) {
    bool ended = false;
    while (received.size() >= kFrameHead) {
      const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(received[i]); };
      const std::size_t size = std::size_t{at(0)} << 16 | std::size_t{at(1)} << 8 | at(2);
      if (received.size() < kFrameHead + size) break;
      const auto type = at(3), flags = at(4);
      if (type == kReset || type == kGoaway) fail("the server has ended a call");
      if (type == kSettings && (flags & kAck) == 0) reply += frame(kSettings, kAck, 0, {});
      if (type == kPing && (flags & kAck) == 0)
        reply += frame(kPing, kAck, 0, received.substr(kFrameHead, size));
      if (type == kData) has_message_ = true;
      if ((type == kData || type == kHeaders) && (flags & kEndStream) != 0) {
        if (!std::exchange(has_message_, false)) fail("an answer has no message");  // an error, no decision
        ended = true;
      }
      received.erase(0, kFrameHead + size);
    }
    return ended;
  }

  bool http2_;
  std::string octets_, fields_;
  bool has_message_ = false;
};

struct Connection {
  int socket = -1;
  Protocol protocol;
  Clock::time_point due{};  // when the request in flight was due
  bool busy = false;
  std::uint32_t stream = 1;
  std::string received{};
};

class Load {
 public:
  Load(std::uint16_t port, std::size_t connections, double rate, double seconds, const Protocol& protocol)
      : gap_(rate > 0 ? nanoseconds(static_cast<std::int64_t>(1e9 / rate)) : nanoseconds{0}),
        begin_(Clock::now()),
        counts_from_(begin_ + nanoseconds(static_cast<std::int64_t>(seconds * 1e8))),
        end_(begin_ + nanoseconds(static_cast<std::int64_t>(seconds * 1e9))),
        next_(begin_) {
    connections_.reserve(connections);
    for (std::size_t i = 0; i < connections; ++i) open(port, protocol);
  }

  void run() {
    while (Clock::now() < end_) {
      const auto now = Clock::now();
      while (!free_.empty() && next_ <= now && now < end_) {
        send_request(gap_.count() > 0 ? next_ : Clock::now());
        next_ += gap_;
      }
      await(free_.empty() ? end_ : std::min(next_, end_));
    }
  }
  void print() {
    if (times_.empty()) fail("no answer has arrived");
    std::sort(times_.begin(), times_.end());
    const auto share = [&](double of) {
      return times_[static_cast<std::size_t>(of * double(times_.size() - 1))] / 1e3;
    };
    const std::chrono::duration<double> counted = end_ - counts_from_;
    std::printf("{\"requests\": %zu, \"rate\": %.0f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f}\n",
                times_.size(), double(times_.size()) / counted.count(), share(0.5), share(0.99), share(1));
  }

 private:
  void open(std::uint16_t port, const Protocol& protocol) {
    Connection made{.socket = ::socket(AF_INET, SOCK_STREAM, 0), .protocol = protocol};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(made.socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (::connect(made.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      fail("connect");
    epoll_event event{.events = EPOLLIN, .data = {.u64 = connections_.size()}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, made.socket, &event) != 0) fail("epoll_ctl");
    send(made, protocol.opening());
    free_.push_back(connections_.size());
    connections_.push_back(std::move(made));
  }
  static void send(Connection& connection, const std::string& octets) {
    if (::send(connection.socket, octets.data(), octets.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(octets.size()))
      fail("send");
  }
  // Uses the connection that has been free for the longest time.
  void send_request(Clock::time_point due) {
    auto& connection = connections_[free_.front()];
    free_.erase(free_.begin());
    connection.due = due;
    connection.busy = true;
    send(connection, connection.protocol.request(connection.stream));
    connection.stream += 2;
  }
  void await(Clock::time_point until) {
    const auto left = std::max(until - Clock::now(), nanoseconds{0});
    const timespec wait{.tv_sec = 0, .tv_nsec = std::min<std::int64_t>(left.count(), 999'999'999)};
    epoll_event events[64];
    const int ready = ::epoll_pwait2(epoll_, events, std::size(events), &wait, nullptr);
    const auto now = Clock::now();
    if (ready > 0) heard_ = now;
    if (now - heard_ > kPatience) fail("the server does not answer");
    for (int i = 0; i < ready; ++i) receive(events[i].data.u64);
  }
  void receive(std::size_t index) {
    auto& connection = connections_[index];
    char piece[16384];
    const auto size = ::recv(connection.socket, piece, sizeof piece, MSG_DONTWAIT);
    if (size <= 0) fail("recv");
    connection.received.append(piece, static_cast<std::size_t>(size));
    std::string reply;
    const bool answered = connection.protocol.take_answer(connection.received, reply);
    if (!reply.empty()) send(connection, reply);
    if (!answered || !connection.busy) return;
    connection.busy = false;
    free_.push_back(index);
    const auto now = Clock::now();
    if (connection.due >= counts_from_) times_.push_back(nanoseconds(now - connection.due).count());
  }

  const nanoseconds gap_;
  const Clock::time_point begin_, counts_from_, end_;
  Clock::time_point next_;  // when the next request is due
  Clock::time_point heard_ = Clock::now();
  const int epoll_ = ::epoll_create1(0);
  std::vector<Connection> connections_;
  std::vector<std::size_t> free_;
  std::vector<std::int64_t> times_;  // how long each counted answer took, in ns
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 6) {
    std::fprintf(stderr, "usage: ask_paced PORT CONNECTIONS RATE SECONDS h1|PATH <REQUEST\n");
    return 2;
  }
  ::prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
  std::string octets;
  char piece[4096];
  for (std::size_t size; (size = std::fread(piece, 1, sizeof piece, stdin)) > 0;) octets.append(piece, size);
  const auto port = static_cast<std::uint16_t>(std::atoi(arguments[1]));
  const auto connections = static_cast<std::size_t>(std::atoi(arguments[2]));
  Load load(port, connections, std::atof(arguments[3]), std::atof(arguments[4]),
            Protocol(arguments[5], octets));
  load.run();
  load.print();
}
