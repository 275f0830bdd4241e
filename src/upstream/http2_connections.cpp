#include "upstream/http2_connections.hpp"

#include "upstream/peer.hpp"

#include <algorithm>
#include <utility>

namespace weir::upstream {

bool Http2Connections::may_be_used() const noexcept {
  switch (settings_.protocol) {
    case Protocol::Http1:
      return false;
    case Protocol::Auto:
      return !chose_http1_;
    case Protocol::H2:
    case Protocol::H2c:
      return true;
  }
  return false;
}

Http2Connections::Shared Http2Connections::find(const void* avoid) noexcept {
  std::erase_if(all_, [](const auto& each) { return each->has_ended() || each->is_http1(); });
  const auto found = std::find_if(all_.begin(), all_.end(), [avoid](const auto& each) {
    return each.get() != avoid && each->has_room();
  });
  return found != all_.end() ? *found : nullptr;
}

Http2Connections::Shared Http2Connections::add() {
  const auto& timeouts = settings_.timeouts;
  return all_.emplace_back(std::make_shared<Http2ServerConnection>(
      executor_, watchdog_,
      Http2ServerConnection::Settings{
          .max_streams = settings_.max_streams, .connect = timeouts.connect, .idle = timeouts.idle}));
}

Http2Connections::Shared Http2Connections::find_or_start(const void* avoid, SSL_SESSION* session) {
  if (auto connection = find(avoid)) return connection;
  auto connection = add();
  connection->start({.member = member_,
                     .location = member_.location(),
                     .session = net::share(session),
                     .requires_http2 = settings_.protocol != Protocol::Auto});
  return connection;
}

Http2Connections::Shared Http2Connections::adopt(std::unique_ptr<net::Stream> stream,
                                                 std::uint32_t address_changes) {
  auto connection = add();
  connection->adopt(std::move(stream), address_changes);
  return connection;
}

void Http2Connections::follow(const ServerGroup::Member::Location& location) noexcept {
  for (const auto& connection : all_)
    if (connection->is_open() && leads_to(connection->stream(), *location.addresses))
      connection->set_address_changes(location.address_changes);
    else
      connection->leave();
}

void Http2Connections::tick() noexcept {
  std::size_t unused = 0;
  for (const auto& connection : all_) {
    connection->tick();
    if (connection->streams() == 0 && ++unused > settings_.max_idle) connection->leave();
  }
  std::erase_if(all_, [](const auto& each) { return each->has_ended(); });
}

void Http2Connections::close() noexcept {
  for (const auto& connection : all_) connection->close();
}

}  // namespace weir::upstream
