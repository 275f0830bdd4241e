#include "weir/upstream/prober.hpp"

#include "upstream/http2_server_connection.hpp"
#include "upstream/http2_server_stream.hpp"

#include "weir/http/grpc_health.hpp"
#include "weir/http/proxy_header.hpp"
#include "weir/http/status_reader.hpp"
#include "weir/net/dial.hpp"
#include "weir/net/use_task.hpp"
#include "weir/upstream/pool.hpp"

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::upstream {

namespace {

// Returns a PROXY header that names no client if the upstream expects PROXY headers; otherwise an empty
// string.
std::string proxy_header_of(const UpstreamSettings& settings) {
  std::string proxy_header;
  if (settings.proxy_protocol) http::append_proxy_header(proxy_header, std::nullopt);
  return proxy_header;
}

std::string host_of(const UpstreamSettings& settings, const ServerGroup::Member& member) {
  return settings.host.empty() ? member.host() : settings.host;
}

std::string request_for(const HealthCheck& check, const std::string& host) {
  if (check.grpc) return http::grpc_health_request(host, *check.grpc);
  return "GET " + check.path + " HTTP/1.1\r\nHost: " + host +
         "\r\nUser-Agent: weir-health\r\nConnection: close\r\n\r\n";
}

}  // namespace

// Probes one server repeatedly.
class Prober::Probe final : net::Watched {
 public:
  // REQUIRES that the upstream has `health`.
  Probe(net::Executor executor, net::Watchdog& watchdog, const net::Clock& clock,
        std::shared_ptr<ServerGroup> server_group, std::size_t server, std::uint32_t seed)
      : Watched(watchdog),
        executor_(executor),
        watchdog_(watchdog),
        clock_(clock),
        server_group_(std::move(server_group)),
        check_(*server_group_->settings().health),
        member_(server_group_->member(server)),
        proxy_header_(proxy_header_of(server_group_->settings())),
        request_(request_for(check_, host_of(server_group_->settings(), member_))),
        pause_(executor),
        random_(seed) {}

  ~Probe() {
    if (http2_) http2_->connection()->close();
  }

  [[nodiscard]] const std::shared_ptr<ServerGroup>& server_group() const noexcept { return server_group_; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }
  // Makes run() return soon.
  void stop() {
    stopped_ = true;
    pause_.cancel();
    cancel();
  }

  net::Task<void> run() {
    while (!stopped_) {
      late_ = lacks_local_resources_ = false;
      arm(check_.timeout);
      const auto location = member_.location();
      std::string fault;
      try {
        fault = co_await ask(location);
      } catch (const std::bad_alloc&) {  // skips this probe; the next one may find more memory
        lacks_local_resources_ = true;
      }
      disarm();
      stream_.reset();
      if (http2_) http2_->connection()->close();
      http2_.reset();
      const bool moved =
          // true: the probe has tested addresses that the server no longer has
          member_.address_changes() != location.address_changes;
      if (!lacks_local_resources_ && !stopped_ && !moved) member_.probed(fault.empty(), fault, clock_.now());
      if (stopped_) co_return;
      pause_.expires_after(spread(check_.interval));
      net::ErrorCode ended;
      co_await pause_.async_wait(net::use_task(ended));
      if (ended) co_return;
    }
  }

 private:
  void on_late() noexcept override {
    late_ = true;
    cancel();
  }
  void cancel() noexcept {
    if (dial_ != nullptr) dial_->cancel();
    if (stream_) stream_->cancel();
    if (http2_) http2_->cancel();
  }

  // Connects to a server that may speak HTTP/2. Sets `stream_` if the server chooses HTTP/1.1, and otherwise
  // `http2_`.
  net::Task<net::ErrorCode> connect_http2(const ServerGroup::Member::Location& location, std::string& fault) {
    const auto connection = std::make_shared<Http2ServerConnection>(
        executor_, watchdog_,
        Http2ServerConnection::Settings{.connect = check_.timeout, .idle = check_.timeout});
    http2_ = std::make_unique<Http2ServerStream>(connection);
    connection->start({.member = member_,
                       .location = location,
                       .session = nullptr,
                       .requires_http2 = server_group_->settings().protocol != Protocol::Auto});
    const auto ec = co_await http2_->connected();
    fault = connection->fault();
    if (!connection->is_http1()) co_return ec;
    http2_.reset();
    stream_ = connection->take_http1();
    co_return ec;
  }

  net::Task<net::ErrorCode> connect(const ServerGroup::Member::Location& location, std::string& fault) {
    if (server_group_->settings().protocol != Protocol::Http1)
      co_return co_await connect_http2(location, fault);
    const net::Dial::Target target{*location.addresses, location.first, proxy_header_, member_.tls(nullptr)};
    net::Dial dial(executor_, watchdog_, target, check_.timeout);
    const net::Dial::ScopedCancelTarget held(dial_, dial);
    const auto ec = co_await dial.connect();
    fault = std::move(dial.fault());
    stream_ = dial.take();
    member_.begin_with(dial.next(), location);
    co_return ec;
  }

  // Probes the server once. Returns the fault of the server, or an empty text if the server is healthy.
  net::Task<std::string> ask(const ServerGroup::Member::Location& location) {
    std::string fault;
    auto ec = co_await connect(location, fault);
    lacks_local_resources_ = is_shortage(ec);
    if (ec && !late_ && !fault.empty()) co_return fault;
    if (ec) co_return late_ ? "no connection in time" : "no connection";
    if (check_.grpc && !http2_) co_return "it does not speak HTTP/2";
    net::ByteStream& stream = http2_ ? static_cast<net::ByteStream&>(*http2_) : *stream_;
    ec = co_await send_request(stream);
    if (!ec && check_.grpc) fault = co_await ask_grpc(stream, ec);
    if (!ec && check_.grpc) co_return fault;
    http::StatusReader answer;
    auto state = http::StatusReader::State::Wanting;
    while (!ec && state == http::StatusReader::State::Wanting) {
      std::array<char, 2048> piece;
      const auto count = co_await stream.read_some(piece.data(), piece.size(), ec);
      state = answer.feed({piece.data(), count});
    }
    if (state == http::StatusReader::State::Known) co_return judge(answer.status());
    // In TLS 1.3, weir's side of the handshake is complete before the server checks weir's certificate. So if
    // the server rejects the certificate, its alert arrives only here.
    if (net::Stream::was_alerted(ec)) co_return "its TLS handshake failed: " + ec.message();
    if (late_) co_return "no response in time";
    co_return state == http::StatusReader::State::Faulty ? "its response is not HTTP"
                                                         : "the connection ended before its response";
  }

  net::Task<net::ErrorCode> send_request(net::ByteStream& stream) {
    net::ErrorCode ec;
    std::string_view rest = request_;
    rest.remove_prefix(stream.try_write(rest, {}, ec));
    while (!ec && !rest.empty()) {
      ec = co_await stream.wait_writable();
      if (!ec) rest.remove_prefix(stream.try_rest(rest, {}, ec));
    }
    co_return ec;
  }

  // Reads the response to a gRPC health check. Returns the fault of the server, or an empty text if the
  // server is healthy. `ec`: why the response did not arrive.
  static net::Task<std::string> ask_grpc(net::ByteStream& stream, net::ErrorCode& ec) {
    std::string response;
    while (!ec && response.size() < http::kMostGrpcHealth) {
      std::array<char, 2048> piece;
      response.append(piece.data(), co_await stream.read_some(piece.data(), piece.size(), ec));
    }
    if (ec == net::asio::error::eof) ec = {};
    co_return http::grpc_health_fault(response);
  }

  [[nodiscard]] std::string judge(unsigned status) const {
    const auto good = [&](const policy::StatusRange& range) {
      return range.first <= status && status <= range.last;
    };
    if (std::any_of(check_.statuses.begin(), check_.statuses.end(), good)) return {};
    return "it returns " + std::to_string(status);
  }

  // Returns the interval, varied randomly by a tenth, so that many weir processes do not probe together.
  [[nodiscard]] base::Duration spread(base::Duration interval) {
    const auto tenth = interval.count() / 10;
    return interval + base::Duration{std::uniform_int_distribution<std::int64_t>{-tenth, tenth}(random_)};
  }

  net::Executor executor_;
  net::Watchdog& watchdog_;
  const net::Clock& clock_;
  const std::shared_ptr<ServerGroup> server_group_;  // shared with the configuration's snapshots
  const HealthCheck& check_;
  ServerGroup::Member& member_;
  const std::string proxy_header_;
  const std::string request_;
  net::Timer pause_;
  std::unique_ptr<net::Stream> stream_;
  std::unique_ptr<Http2ServerStream> http2_;
  net::Dial* dial_ = nullptr;  // points into the frame of connect() while connect() waits
  bool stopped_ = false;
  bool late_ = false;
  // True if a probe failed because this host lacks descriptors, ports or memory. The result is then not
  // recorded, because it says nothing about the server.
  bool lacks_local_resources_ = false;
  std::minstd_rand random_;
};

Prober::Prober(net::Executor executor, const net::Clock& clock)
    : executor_(executor), clock_(clock), watchdog_(executor) {}

Prober::~Prober() {
  if (ticking_) net::Reactor::of(executor_).end_tasks();
}

void Prober::watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups) {
  for (auto& probe : probes_)
    if (!probe.stopped() &&
        std::find(server_groups.begin(), server_groups.end(), probe.server_group()) == server_groups.end())
      probe.stop();
  for (const auto& server_group : server_groups) {
    const auto asks = [&](const Probe& probe) {
      return probe.server_group() == server_group && !probe.stopped();
    };
    if (server_group->settings().health && std::none_of(probes_.begin(), probes_.end(), asks))
      add(server_group);
  }
}

void Prober::add(const std::shared_ptr<ServerGroup>& server_group) {
  if (!std::exchange(ticking_, true)) watchdog_.start();
  std::random_device seed;
  for (std::size_t at = 0; at < server_group->size(); ++at) {
    auto& probe = probes_.emplace_back(executor_, watchdog_, clock_, server_group, at, seed());
    // Removes a probe that has ended after stop(). A probe that ends without stop() has thrown an exception,
    // and is not started again.
    net::spawn(executor_, probe.run(), [this, &probe](const std::exception_ptr&) {
      if (!probe.stopped()) return;
      net::asio::post(executor_, [this, &probe] {
        probes_.remove_if([&](const Probe& each) { return &each == &probe; });
      });
    });
  }
}

}  // namespace weir::upstream
