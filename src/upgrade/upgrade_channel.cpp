#include "weir/upgrade/upgrade_channel.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

namespace weir::upgrade {

namespace {

constexpr int kForRoom = 1'000;  // how long to wait if the channel is full, in milliseconds
constexpr std::size_t kLongest = 64 << 10;

constexpr std::size_t kControl = CMSG_SPACE(kMostDescriptors * sizeof(int));

void put_descriptors(msghdr& message, char* control, const std::vector<int>& descriptors) noexcept {
  const auto bytes = descriptors.size() * sizeof(int);
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(bytes);
  auto* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
}

std::vector<net::OwnedDescriptor> take_descriptors(msghdr& message) {
  std::vector<net::OwnedDescriptor> taken;
  for (auto* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const auto count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      taken.emplace_back(fd);
    }
  }
  return taken;
}

// Splits the text at line breaks. The first line is the message's word.
void divide(std::string_view text, UpgradeMessage& message) {
  message.lines.clear();
  const auto end = text.find('\n');
  message.word = text.substr(0, end);
  while (!text.empty()) {
    const auto at = text.find('\n');
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + 1);
    message.lines.emplace_back(text.substr(0, text.find('\n')));
  }
}

}  // namespace

std::optional<std::pair<net::OwnedDescriptor, net::OwnedDescriptor>> upgrade_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return std::nullopt;
  return std::pair(net::OwnedDescriptor(ends[0]), net::OwnedDescriptor(ends[1]));
}

bool send_message(int channel, std::string_view word, const std::vector<std::string>& lines,
                  const std::vector<int>& descriptors) noexcept {
  try {
    std::string text(word);
    for (const auto& line : lines) (text += '\n') += line;
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, kControl> control{};
    if (!descriptors.empty()) put_descriptors(message, control.data(), descriptors);
    for (;;) {
      if (::sendmsg(channel, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return true;
      if (errno == EINTR) continue;
      pollfd room{channel, POLLOUT, 0};
      if (errno != EAGAIN || ::poll(&room, 1, kForRoom) <= 0) return false;
    }
  } catch (...) {  // no memory for the text
    return false;
  }
}

ReceiveResult receive_message(int channel, bool wait, UpgradeMessage& message) {
  std::string text(kLongest, '\0');
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) std::array<char, kControl> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = -1;
  do got = ::recvmsg(channel, &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return ReceiveResult::Nothing;
  if (got <= 0) return ReceiveResult::End;
  message.descriptors = take_descriptors(header);
  message.cut = (header.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0;
  divide(std::string_view(text).substr(0, static_cast<std::size_t>(got)), message);
  return ReceiveResult::Message;
}

}  // namespace weir::upgrade
