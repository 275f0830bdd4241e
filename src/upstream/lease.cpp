#include "upstream/http2_connections.hpp"
#include "upstream/http2_server_stream.hpp"
#include "upstream/peer.hpp"

#include "weir/net/dial.hpp"
#include "weir/upstream/pool.hpp"

#include <cerrno>
#include <initializer_list>
#include <utility>

namespace weir::upstream {

bool is_shortage(const net::ErrorCode& ec) noexcept {
  for (const int shortage : {EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL, EAGAIN})
    if (ec.value() == shortage) return true;
  return false;
}

bool is_out_of_descriptors(const net::ErrorCode& ec) noexcept {
  return ec.value() == EMFILE || ec.value() == ENFILE;
}

bool is_refusal(const net::ErrorCode& ec) noexcept {
  return ec.value() == EBUSY;
}

Lease::Lease() noexcept = default;

Lease::Lease(Pool& pool, std::size_t server) noexcept : pool_(&pool), server_(server) {}

Lease::Lease(Lease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      server_(other.server_),
      address_changes_(other.address_changes_),
      stream_(std::move(other.stream_)),
      http2_(std::move(other.http2_)),
      avoid_(other.avoid_),
      room_after_(other.room_after_),
      opened_(other.opened_),
      room_at_any_time_(other.room_at_any_time_),
      reused_(other.reused_),
      keep_(other.keep_) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  release();
  pool_ = std::exchange(other.pool_, nullptr);
  server_ = other.server_;
  address_changes_ = other.address_changes_;
  stream_ = std::move(other.stream_);
  http2_ = std::move(other.http2_);
  avoid_ = other.avoid_;
  room_after_ = other.room_after_;
  room_at_any_time_ = other.room_at_any_time_;
  reused_ = other.reused_;
  opened_ = other.opened_;
  keep_ = other.keep_;
  return *this;
}

Lease::~Lease() {
  release();
}

void Lease::release() noexcept {
  if (pool_ == nullptr) return;
  --pool_->loads_[server_].in_flight;
  pool_->in_flight_[server_].remove();
  member().leave();
  auto& idle = pool_->idle_[server_];
  auto* const opened = !connected() ? nullptr : http2_ ? &http2_->connection()->stream() : stream_.get();
  if (!reused_ && opened != nullptr && opened->is_tls()) pool_->sessions_[server_] = opened->session();
  if (keep_ && stream_ && connected() && idle.size() < pool_->settings().max_idle &&
      (!moved() || leads_to(*stream_, *member().location().addresses)))
    idle.push_back({std::move(stream_), pool_->now_, pool_->reactor_.polls()});
  stream_.reset();
  http2_.reset();
  pool_ = nullptr;
}

bool Lease::connected() const noexcept {
  return http2_ ? http2_->connection()->is_open() : stream_ && stream_->is_open();
}

net::ByteStream& Lease::stream() noexcept {
  if (http2_) return *http2_;
  return *stream_;
}

const void* Lease::http2_connection() const noexcept {
  return http2_ ? http2_->connection().get() : nullptr;
}

ExchangeFailure Lease::broke_by() const noexcept {
  return http2_ ? http2_->broke_by() : ExchangeFailure::Connection;
}

bool Lease::may_have_met_idle_close() const noexcept {
  return reused_ && broke_by() == ExchangeFailure::Connection &&
         (!http2_ || http2_->may_have_met_idle_close());
}

const std::string& Lease::server_name() const noexcept {
  return member().name();
}

ServerGroup::Member& Lease::member() const noexcept {
  return pool_->server_group_.member(server_);
}

net::Task<net::ErrorCode> Lease::connect(std::string_view proxy_header, base::Duration patience,
                                         std::string& fault) {
  reused_ = false;
  opened_ = 0;
  stream_.reset();
  if (http2_ || pool_->http2_[server_].may_be_used()) {
    const auto ec = co_await connect_http2(fault);
    if (ec || http2_ || stream_) co_return ec;
  }
  co_return co_await connect_http1(proxy_header, patience, fault);
}

// Waits for an HTTP/2 connection. Other requests may wait for the same connection. If the server chooses
// HTTP/1.1, the first of these requests gets the connection as `stream_`, and the others get none. If the
// server accepts no requests on the first connection, tries one more connection, because the server may just
// be ending the first.
net::Task<net::ErrorCode> Lease::connect_http2(std::string& fault) {
  auto& connections = pool_->http2_[server_];
  for (unsigned refusals = 0; refusals < 2;) {
    if (!http2_) {
      auto connection = connections.find_or_start(avoid_, pool_->sessions_[server_].get());
      http2_ = std::make_unique<Http2ServerStream>(std::move(connection));
    }
    const auto connection = http2_->connection();
    const auto ec = co_await http2_->connected();
    fault = connection->fault();
    address_changes_ = connection->address_changes();
    if (!ec && connection->mark_used()) ++opened_;
    if (ec && !is_refusal(ec)) co_return ec;
    if (connection->is_open() && connection->may_send()) co_return ec;
    if (connection->is_open() && connection->is_closed_to_requests()) break;
    http2_.reset();
    if (connection->is_http1()) {
      connections.note_choice(true);
      stream_ = connection->take_http1();
      co_return ec;
    }
    // Counts a refusal if there was an error, or if the connection accepts no requests. If neither is true,
    // the server's SETTINGS permit no further stream on this connection. The next iteration uses another
    // connection.
    if (ec || !connection->accepts_requests()) ++refusals;
  }
  co_return net::ErrorCode(EBUSY, boost::system::system_category());
}

net::Task<net::ErrorCode> Lease::connect_http1(std::string_view proxy_header, base::Duration patience,
                                               std::string& fault) {
  const auto location = member().location();
  address_changes_ = location.address_changes;
  // The task holds its own reference to the TLS session, because another connection may replace the pool's
  // session during the connect.
  const auto session = net::share(pool_->sessions_[server_].get());
  const net::Dial::Target target{*location.addresses, location.first, proxy_header,
                                 member().tls(session.get())};
  net::Dial dial(pool_->executor_, pool_->watchdog_, target, patience);
  const net::Dial::ScopedCancelTarget held(dial_, dial);
  const auto ec = co_await dial.connect();
  fault = std::move(dial.fault());
  stream_ = dial.take();
  if (!ec) ++opened_;
  member().begin_with(dial.next(), location);
  auto& connections = pool_->http2_[server_];
  if (ec) connections.note_choice(false);
  if (ec || !stream_->is_tls() || stream_->protocol() != "h2") co_return ec;
  connections.note_choice(false);
  http2_ =
      std::make_unique<Http2ServerStream>(connections.adopt(std::move(stream_), location.address_changes));
  (void)http2_->connection()->mark_used();  // opened_ already counts this connection
  co_return co_await connect_http2(fault);
}

void Lease::cancel() noexcept {
  if (dial_ != nullptr) dial_->cancel();
  if (stream_) stream_->cancel();
  if (http2_) http2_->cancel();
}

}  // namespace weir::upstream
