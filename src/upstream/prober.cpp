#include "weir/upstream/prober.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/http/preamble.hpp"
#include "weir/net/connect.hpp"
#include "weir/net/signal.hpp"
#include "weir/upstream/pool.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>

namespace weir::upstream {

namespace {

// A server whose head is longer than that is not well.
constexpr std::size_t kMostHead = 16 << 10;

std::string request_for(const HealthCheck& check, const base::Endpoint& address, bool proxy_protocol) {
  std::string preamble;
  if (proxy_protocol) http::append_preamble(preamble, std::nullopt);  // it speaks for itself
  return preamble + "GET " + check.path +
         " HTTP/1.1\r\nHost: " + (address.is_unix() ? std::string("localhost") : address.to_string()) +
         "\r\nUser-Agent: weir-health\r\nConnection: close\r\n\r\n";
}

}  // namespace

// One server.
class Prober::Probe final : net::Watched {
 public:
  Probe(net::Executor executor, net::Watchdog& watchdog, const net::Clock& clock, const HealthCheck& check,
        Fleet::Member& member, bool proxy_protocol, std::uint32_t seed)
      : Watched(watchdog),
        executor_(executor),
        clock_(clock),
        check_(check),
        member_(member),
        request_(request_for(check, member.settings().address, proxy_protocol)),
        pause_(executor),
        random_(seed) {}

  net::Task<void> run() {
    for (;;) {
      late_ = short_here_ = false;
      arm(check_.timeout);
      const auto fault = co_await ask();
      disarm();
      stream_.reset();
      if (!short_here_) member_.probed(fault.empty(), fault, clock_.now());
      pause_.expires_after(spread(check_.interval));
      const auto ended = co_await net::Expiry(pause_);
      if (ended) co_return;
    }
  }

 private:
  void on_late() noexcept override {
    late_ = true;
    if (stream_) stream_->cancel();
  }

  // What is wrong; empty: nothing.
  net::Task<std::string> ask() {
    std::string fault;
    const auto tls = member_.tls(nullptr);
    auto ec = co_await net::connect_to(executor_, member_.server().addresses, tls, stream_, fault);
    short_here_ = is_shortage(ec);
    if (ec && !late_ && !fault.empty()) co_return fault;
    if (ec) co_return late_ ? "it cannot be reached in time" : "it cannot be reached";
    ec = co_await stream_->write(request_);
    std::string answer;
    for (std::size_t searched = 0; !ec && answer.size() < kMostHead;) {
      std::array<char, 2048> piece;
      const auto count = co_await stream_->read_some(piece.data(), piece.size(), ec);
      answer.append(piece.data(), count);
      if (const auto size = http::find_head_end(answer, searched); size != 0) {
        const auto status = status_of(std::string_view(answer).substr(0, size));
        if (status >= 200) co_return judge(status);
        if (status == 0) break;
        answer.erase(0, size);
        searched = 0;
      } else {
        searched = answer.size();
      }
    }
    co_return late_ ? "it does not answer in time" : "its answer is no HTTP";
  }

  // 0: it is none.
  [[nodiscard]] unsigned status_of(std::string_view head) {
    return http::parse_response_head(head, false, head_) ? 0 : head_.status;
  }

  [[nodiscard]] std::string judge(unsigned status) const {
    const auto good = [&](const policy::StatusRange& range) {
      return range.first <= status && status <= range.last;
    };
    if (std::any_of(check_.statuses.begin(), check_.statuses.end(), good)) return {};
    return "it answers " + std::to_string(status);
  }

  // A tenth more or less, so that many weirs do not ask together for ever.
  [[nodiscard]] base::Duration spread(base::Duration interval) {
    const auto tenth = interval.count() / 10;
    return interval + base::Duration{std::uniform_int_distribution<std::int64_t>{-tenth, tenth}(random_)};
  }

  net::Executor executor_;
  const net::Clock& clock_;
  const HealthCheck& check_;
  Fleet::Member& member_;
  const std::string request_;
  net::Timer pause_;
  std::unique_ptr<net::Stream> stream_;
  http::ResponseHead head_;
  bool late_ = false;
  bool short_here_ = false;  // weir itself lacks descriptors or ports, which says nothing of the server
  std::minstd_rand random_;
};

Prober::Prober(net::Executor executor, const net::Clock& clock, std::deque<Fleet>& fleets)
    : executor_(executor), watchdog_(executor) {
  std::random_device seed;
  for (auto& fleet : fleets)
    for (std::size_t at = 0; fleet.settings().health && at < fleet.size(); ++at)
      probes_.push_back(std::make_unique<Probe>(executor_, watchdog_, clock, *fleet.settings().health,
                                                fleet.member(at), fleet.settings().proxy_protocol, seed()));
}

Prober::~Prober() {
  if (!probes_.empty()) net::Reactor::of(executor_).end_tasks();
}

void Prober::start() {
  if (probes_.empty()) return;
  watchdog_.start();
  for (const auto& probe : probes_)  // one that ends otherwise than with its timer has thrown
    net::spawn(executor_, probe->run(), [](const std::exception_ptr&) {});
}

}  // namespace weir::upstream
