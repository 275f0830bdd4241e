#include "app/passage.hpp"

#include <utility>

namespace weir::app {

namespace {

constexpr std::string_view kWord = "connection";

}  // namespace

bool Departures::take(int fd, std::string_view listener, std::string_view unread) noexcept {
  try {
    return send_message(channel_.get(), kWord, {std::string(listener), std::string(unread)}, {fd});
  } catch (...) {  // no memory
    return false;
  }
}

Arrivals::Arrivals(net::Executor control, OwnedDescriptor channel, Take take)
    : channel_(control, channel.release()), take_(std::move(take)) {
  await_next();
}

void Arrivals::await_next() {
  channel_.async_wait(net::asio::posix::descriptor_base::wait_read, [this](const net::ErrorCode& error) {
    if (error) return;
    read_all();
    if (channel_.is_open()) await_next();
  });
}

void Arrivals::read_all() {
  UpgradeMessage message;
  for (;;) {
    const auto arrival = receive_message(channel_.native_handle(), false, message);
    if (arrival == Arrival::Nothing) return;
    if (arrival == Arrival::End) break;
    if (message.word != kWord || message.lines.size() < 2 || message.descriptors.size() != 1) continue;
    // Whoever divides lines has divided what was read as well.
    auto unread = std::move(message.lines[1]);
    for (std::size_t i = 2; i < message.lines.size(); ++i) (unread += '\n') += message.lines[i];
    take_(std::move(message.descriptors.front()), message.lines[0], std::move(unread));
  }
  close();
}

void Arrivals::close() noexcept {
  net::ErrorCode ignored;
  channel_.close(ignored);
}

}  // namespace weir::app
