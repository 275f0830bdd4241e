#include "weir/upgrade/takeover.hpp"

#include "weir/config/cannot_start.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace weir::upgrade {

namespace {

constexpr const char* kProtocol = "weir upgrade 2";
constexpr std::size_t kNumbers = 7;

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
}

// Returns true if the parent of this process created the channel. If another process did, the environment
// variable is wrong or out of date.
bool is_from_parent(int channel) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(channel, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.pid == ::getppid();
}

}  // namespace

std::vector<std::string> lines_of(const CarriedState& carried_state) {
  return {kProtocol,
          std::to_string(carried_state.clock.count()),
          std::to_string(carried_state.table.k0),
          std::to_string(carried_state.table.k1),
          std::to_string(carried_state.shared.k0),
          std::to_string(carried_state.shared.k1),
          std::to_string(carried_state.upgraded),
          std::to_string(carried_state.failed)};
}

std::optional<CarriedState> carried_state_of(const std::vector<std::string>& lines) {
  if (lines.size() != kNumbers + 1 || lines[0] != kProtocol) return std::nullopt;
  CarriedState carried_state;
  base::Duration::rep clock = 0;
  const bool whole = parse(lines[1], clock) && parse(lines[2], carried_state.table.k0) &&
                     parse(lines[3], carried_state.table.k1) && parse(lines[4], carried_state.shared.k0) &&
                     parse(lines[5], carried_state.shared.k1) && parse(lines[6], carried_state.upgraded) &&
                     parse(lines[7], carried_state.failed);
  if (!whole) return std::nullopt;
  carried_state.clock = base::Duration(clock);
  return carried_state;
}

std::unique_ptr<Takeover> Takeover::of_environment() {
  const char* value = std::getenv(kVariable);  // NOLINT(concurrency-mt-unsafe): no thread runs yet
  if (value == nullptr) return nullptr;
  int fd = -1;
  const bool number = parse(std::string_view(value), fd) && fd > STDERR_FILENO;
  ::unsetenv(kVariable);  // NOLINT(concurrency-mt-unsafe): no thread runs yet
  if (!number || !is_from_parent(fd)) return nullptr;
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  std::unique_ptr<Takeover> takeover(new Takeover(net::OwnedDescriptor(fd)));
  takeover->read_inheritance();
  return takeover;
}

void Takeover::read_inheritance() {
  UpgradeMessage message;
  while (receive_message(channel_.get(), true, message) == ReceiveResult::Message) {
    if (message.cut) {
      const std::string why = "there are too few file descriptors for the sockets of the old process";
      fail(why);
      throw config::CannotStart(why);
    }
    if (message.word == "inherited") return;
    if (message.word == "hello") {
      const auto carried_state = carried_state_of(message.lines);
      if (!carried_state) break;
      carried_state_ = *carried_state;
    } else if (message.lines.size() == 1) {
      inherited_.push_back(
          {std::move(message.word), std::move(message.lines[0]), std::move(message.descriptors)});
    }
  }
  const std::string why =
      "the running process uses another version of the upgrade protocol; restart weir instead";
  fail(why);
  throw config::CannotStart(why);
}

std::vector<net::ListeningSocket> Takeover::take(std::string_view word, const base::Endpoint& address) {
  std::vector<net::ListeningSocket> taken;
  const auto text = address.to_string();
  for (auto& one : inherited_) {  // several messages may describe one address with many sockets
    if (one.word != word || one.address != text) continue;
    for (auto& each : std::exchange(one.sockets, {})) {
      auto socket = net::ListeningSocket::inherit(each.release(), address);
      if (socket) taken.push_back(std::move(*socket));
    }
  }
  return taken;
}

std::vector<net::ListeningSocket> Takeover::take_listeners(const base::Endpoint& address) {
  return take("listener", address);
}

std::vector<net::ListeningSocket> Takeover::take_admin(const base::Endpoint& address) {
  return take("admin", address);
}

void Takeover::close_rest() {
  for (const auto& one : inherited_) {
    const auto address = base::parse_endpoint(one.address);
    if (!one.sockets.empty() && address && address->is_unix()) files_.push_back(address->unix_path);
  }
  inherited_.clear();
}

void Takeover::remove_files_of_rest() noexcept {
  for (const auto& file : files_) ::unlink(file.c_str());
}

void Takeover::fail(std::string_view why) noexcept {
  try {
    std::string line(why);
    std::replace(line.begin(), line.end(), '\n', ' ');
    // If sending fails, the old process has ended and does not need the message.
    if (!send_message(channel_.get(), "failed", {std::move(line)})) return;
  } catch (const std::bad_alloc&) {  // out of memory; the old process will see that this process ends
  }
}

std::optional<UpgradeMessage> Takeover::await(std::string_view word) {
  UpgradeMessage message;
  while (receive_message(channel_.get(), true, message) == ReceiveResult::Message)
    if (message.word == word) return message;
  return std::nullopt;
}

InheritedState Takeover::await_state() {
  InheritedState state;
  UpgradeMessage message;
  bool connected = send_message(channel_.get(), "ready");
  while (connected && message.word != "state") {
    connected = receive_message(channel_.get(), true, message) == ReceiveResult::Message;
    if (connected && message.word == "held")
      std::move(message.lines.begin(), message.lines.end(), std::back_inserter(state.held));
  }
  if (!connected || message.descriptors.size() != 1)
    throw config::CannotStart("the old process exited or cancelled the upgrade");
  state.file = std::move(message.descriptors.front());
  return state;
}

void Takeover::await_open_message(const limit::Restored& restored) {
  const auto lines = {std::to_string(restored.keys), std::to_string(restored.changed),
                      std::to_string(restored.left_out)};
  if (send_message(channel_.get(), "restored", lines)) (void)await("open");
}

HandoffChannel Takeover::await_handoff_channel(const std::vector<std::string>& alert_ids) {
  const bool is_sent = send_message(channel_.get(), "serving", alert_ids);
  auto over = is_sent ? await("over") : std::nullopt;
  return {std::move(channel_), over ? std::move(over->lines) : std::vector<std::string>{}};
}

}  // namespace weir::upgrade
