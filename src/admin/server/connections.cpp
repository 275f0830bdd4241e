#include "admin/server/connections.hpp"

#include <algorithm>

namespace weir::admin {

void Connection::close() {
  net::ErrorCode ignored;
  socket.close(ignored);
}

void Connection::end_wait() {
  if (!reads_body || late) return close();
  late = true;
  net::ErrorCode ignored;
  socket.cancel(ignored);
}

void Connections::make_room(std::size_t most) {
  if (all_.empty() || all_.size() < most) return;
  const auto oldest = std::min_element(
      all_.begin(), all_.end(),
      [](const Connection* one, const Connection* other) { return one->since < other->since; });
  auto& closed = **oldest;
  all_.erase(oldest);  // the connection's coroutine still runs, but the connection must not be chosen again
  closed.close();
}

void Connections::end_late() {
  const auto now = Connection::Clock::now();
  for (Connection* connection : all_)
    if (connection->deadline <= now) connection->end_wait();
}

void Connections::close_all() {
  for (Connection* connection : all_) connection->close();
}

bool Connections::is_answering() const {
  return std::any_of(all_.begin(), all_.end(), [](const Connection* one) { return one->answers; });
}

}  // namespace weir::admin
