// Sends a request at a constant rate, over HTTP/1.1 or by gRPC over HTTP/2, and measures how long the answers
// take. paced.py compiles and runs it.
//
//   paced PORT CONNECTIONS RATE WARM_SECONDS SECONDS h1 <REQUEST
//   paced PORT CONNECTIONS RATE WARM_SECONDS SECONDS PATH <MESSAGE
//
// The load is open: each request has a time at which it is due, whether or not earlier ones are answered. A
// request waits for a free connection, and this wait counts, as in wrk2. RATE is in requests per second; 0
// sends on every connection as soon as the last response is there. The first WARM_SECONDS do not count.
// Prints one line of JSON.
//
// wrk has no rate. h2load has one (--rps), but its timers tick in milliseconds, so it sends in bursts.

#include "paced_protocol.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
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

// how long to wait for responses after the load has ended; a response that arrives later is a fault
constexpr std::chrono::seconds kPatience{10};

struct Connection {
  Protocol protocol;
  int socket = -1;
  Clock::time_point due{};   // when the request in flight was due
  Clock::time_point sent{};  // when the request in flight was sent
  std::string received{};
};

class Load {
 public:
  Load(std::uint16_t port, std::size_t connections, double rate, const Protocol& protocol)
      : rate_(rate), connections_(connections, Connection{protocol}), epoll_(epoll_create1(0)) {
    for (Connection& each : connections_) connect_to(port, each);
  }

  // Sends until `end`, and then waits at most kPatience for the missing responses.
  void run(Clock::time_point counted_from, Clock::time_point end) {
    begun_ = Clock::now();
    counted_from_ = counted_from;
    while (true) {
      const Clock::time_point now = Clock::now();
      if (now < end) send_due(now);
      if (now >= end && free_.size() == connections_.size()) return;
      if (now >= end + kPatience) {
        faults_ += connections_.size() - free_.size();
        return;
      }
      receive(wait_time(now, end));
    }
  }

  void print(double seconds) {
    std::sort(took_.begin(), took_.end());
    std::sort(late_.begin(), late_.end());
    std::printf(
        "{\"requests\": %zu, \"seconds\": %.3f, \"refused\": %zu, \"faults\": %zu, \"p50_us\": %.1f, "
        "\"p99_us\": %.1f, "
        "\"max_us\": %.1f, \"late_p50_us\": %.1f, \"late_p99_us\": %.1f}\n",
        took_.size(), seconds, refused_, faults_, at(took_, 0.5), at(took_, 0.99), at(took_, 1),
        at(late_, 0.5), at(late_, 0.99));
  }

 private:
  static double at(const std::vector<nanoseconds>& sorted, double share) {
    if (sorted.empty()) return 0;
    const auto last = static_cast<double>(sorted.size() - 1);
    return static_cast<double>(sorted[static_cast<std::size_t>(share * last)].count()) / 1e3;
  }

  void connect_to(std::uint16_t port, Connection& connection) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection.socket = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection.socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      fail("connect");
    const int yes = 1;
    setsockopt(connection.socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    epoll_event event{.events = EPOLLIN, .data = {.ptr = &connection}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.socket, &event) != 0) fail("epoll_ctl");
    send(connection, connection.protocol.opening());
    free_.push_back(&connection);
  }

  static void send(const Connection& connection, const std::string& octets) {
    if (write(connection.socket, octets.data(), octets.size()) != static_cast<ssize_t>(octets.size()))
      fail("write");
  }

  // Returns when the next request is due. Computes the time from the beginning of the load, so that rounding
  // errors do not add up.
  Clock::time_point due() const {
    if (rate_ == 0) return begun_;
    return begun_ + nanoseconds(static_cast<long long>(static_cast<double>(count_) * 1e9 / rate_));
  }

  void send_due(Clock::time_point now) {
    while (!free_.empty() && due() <= now) {
      Connection& connection = *free_.front();
      free_.pop_front();
      connection.sent = Clock::now();
      connection.due = rate_ == 0 ? connection.sent : due();
      ++count_;
      send(connection, connection.protocol.next_request());
    }
  }

  // Returns how long to wait for responses: until the next request is due, but at most until `end`. If no
  // connection is free, until `end`. After `end`: 100 ms.
  nanoseconds wait_time(Clock::time_point now, Clock::time_point end) const {
    if (now >= end) return std::chrono::milliseconds(100);
    return std::clamp<nanoseconds>(free_.empty() ? end - now : due() - now, nanoseconds(0), end - now);
  }

  void receive(nanoseconds wait) {
    epoll_event events[256];
    const timespec time{wait.count() / 1'000'000'000, wait.count() % 1'000'000'000};
    const int ready = epoll_pwait2(epoll_, events, std::size(events), &time, nullptr);
    if (ready < 0 && errno != EINTR) fail("epoll_pwait2");
    for (int n = 0; n < ready; ++n) read_from(*static_cast<Connection*>(events[n].data.ptr));
  }

  void read_from(Connection& connection) {
    char piece[16384];
    const ssize_t octets = read(connection.socket, piece, sizeof piece);
    const Clock::time_point now = Clock::now();
    if (octets < 0) fail("read");
    if (octets == 0) {
      errno = ECONNRESET;
      fail("the server has closed a connection");
    }
    connection.received.append(piece, static_cast<std::size_t>(octets));
    std::string reply;
    const std::optional<Answer> answer = connection.protocol.take_answer(connection.received, reply);
    if (!reply.empty()) send(connection, reply);
    if (!answer) return;
    free_.push_back(&connection);
    if (connection.due < counted_from_) return;
    took_.push_back(now - connection.due);
    late_.push_back(connection.sent - connection.due);
    refused_ += answer->refused ? 1 : 0;
  }

  double rate_;
  std::vector<Connection> connections_;  // never grows, because epoll and free_ point into it
  int epoll_;
  std::deque<Connection*> free_;
  Clock::time_point begun_, counted_from_;
  std::size_t count_ = 0;  // number of requests sent
  std::size_t refused_ = 0, faults_ = 0;
  std::vector<nanoseconds> took_, late_;
};

std::string standard_input() {
  std::string text;
  char piece[4096];
  while (const ssize_t octets = read(STDIN_FILENO, piece, sizeof piece)) {
    if (octets < 0) fail("read");
    text.append(piece, static_cast<std::size_t>(octets));
  }
  return text;
}

nanoseconds seconds(const char* text) {
  return nanoseconds(static_cast<long long>(std::atof(text) * 1e9));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7) {
    std::fprintf(stderr, "usage: paced PORT CONNECTIONS RATE WARM_SECONDS SECONDS h1|PATH <REQUEST\n");
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1UL);  // otherwise the kernel wakes this program up to 50 µs late
  Load load(static_cast<std::uint16_t>(std::atoi(arguments[1])),
            static_cast<std::size_t>(std::atoi(arguments[2])), std::atof(arguments[3]),
            Protocol(arguments[6], standard_input()));
  const Clock::time_point counted_from = Clock::now() + seconds(arguments[4]);
  const nanoseconds counted = seconds(arguments[5]);
  load.run(counted_from, counted_from + counted);
  load.print(std::chrono::duration<double>(counted).count());
}
