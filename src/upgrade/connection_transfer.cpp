#include "weir/upgrade/connection_transfer.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <sys/socket.h>

namespace weir::upgrade {

namespace {

constexpr std::string_view kConnectionMessage = "connection";
constexpr std::string_view kHeld = "held";
constexpr std::string_view kRelayed = "relayed";
constexpr std::string_view kRelayedPlain = "relayed plain";
// The number of lines in a message that precede the unread bytes. lines_of() puts the unread bytes last,
// because they may contain line breaks.
constexpr std::size_t kLines = 4;

// The maximum size in bytes of the unread bytes, the certificate and its subject together. A message has at
// most 64 KiB; the remaining 4 KiB are for the other lines.
constexpr std::size_t kMost = 60 << 10;

std::string text_of(const http::ConnectionEnds& ends) {
  return ends.source.to_string() + ' ' + std::to_string(ends.source_port) + ' ' +
         ends.destination.to_string() + ' ' + std::to_string(ends.destination_port);
}

std::optional<std::uint16_t> port_of(std::string_view text) {
  std::uint16_t port = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return port;
}

std::optional<http::ConnectionEnds> ends_of(std::string_view text) {
  std::array<std::string_view, 4> words;
  for (auto& word : words) {
    const auto end = text.find(' ');
    word = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  const auto source = base::IpAddress::parse(words[0]), destination = base::IpAddress::parse(words[2]);
  const auto source_port = port_of(words[1]), destination_port = port_of(words[3]);
  if (!source || !destination || !source_port || !destination_port) return std::nullopt;
  return http::ConnectionEnds{*source, *destination, *source_port, *destination_port};
}

// Returns the lines of a message about a connection, in this order:
// - the address of the listener
// - "relayed", "relayed plain" or an empty line (ConnectionInfo::relayed and ::secure)
// - the addresses and ports of the two ends, or nothing. If the client has a certificate, a blank and the
//   certificate follow. A weir that does not know the certificate reads only the addresses and ports.
// - the subject of the client's certificate
// - the unread bytes
std::vector<std::string> lines_of(std::string_view listener, const proxy::ConnectionInfo& connection_info,
                                  std::string_view unread) {
  const auto how = !connection_info.relayed ? std::string_view()
                   : connection_info.secure ? kRelayed
                                            : kRelayedPlain;
  auto ends = connection_info.ends ? text_of(*connection_info.ends) : "";
  if (!connection_info.certificate.empty()) ends.append(" ").append(connection_info.certificate);
  return {std::string(listener), std::string(how), std::move(ends), connection_info.certificate_subject,
          std::string(unread)};
}

// Returns the connection that a message describes. Joins the unread bytes, which were split at line breaks.
ReceivedConnection connection_of(UpgradeMessage& message) {
  auto& lines = message.lines;
  // A certificate is ":BASE64:" (RFC 9440) without blanks, so a third line with a certificate ends with a
  // colon. A third line without one ends with a port.
  auto certificate = lines[2].ends_with(':') ? lines[2].substr(lines[2].rfind(' ') + 1) : std::string();
  ReceivedConnection arrived{.socket = std::move(message.descriptors.front()),
                             .listener = std::move(lines[0]),
                             .connection_info = {.ends = ends_of(lines[2]),
                                                 .certificate_subject = std::move(lines[3]),
                                                 .certificate = std::move(certificate),
                                                 .relayed = lines[1] == kRelayed || lines[1] == kRelayedPlain,
                                                 .secure = lines[1] == kRelayed},
                             .unread = std::move(lines[kLines])};
  for (std::size_t i = kLines + 1; i < lines.size(); ++i) (arrived.unread += '\n') += lines[i];
  return arrived;
}

}  // namespace

proxy::HandoffResult HandoffSender::take(int fd, std::string_view listener,
                                         const proxy::ConnectionInfo& connection_info,
                                         std::string_view unread) noexcept {
  using proxy::HandoffResult;
  const auto of_certificate = connection_info.certificate_subject.size() + connection_info.certificate.size();
  if (of_certificate + unread.size() > kMost) return HandoffResult::NotThis;
  try {
    const bool sent =
        send_message(channel_.get(), kConnectionMessage, lines_of(listener, connection_info, unread), {fd});
    return sent ? HandoffResult::Yes : HandoffResult::Gone;
  } catch (...) {  // no memory for the message
    return HandoffResult::NotThis;
  }
}

void HandoffSender::report_permits(const std::vector<std::string>& lines) noexcept {
  (void)send_message(channel_.get(), kHeld, lines);
}

HandoffReceiver::HandoffReceiver(net::Executor control, net::OwnedDescriptor channel, Callbacks callbacks)
    : channel_(control, channel.release()), callbacks_(std::move(callbacks)) {
  await_next();
}

void HandoffReceiver::await_next() {
  channel_.async_wait(net::asio::posix::descriptor_base::wait_read, [this](const net::ErrorCode& error) {
    if (error) return;
    if (read_all()) return await_next();
    close();
    callbacks_.ended();
  });
}

// Receives all messages that have arrived. Returns false if no more connections will arrive.
bool HandoffReceiver::read_all() {
  UpgradeMessage message;
  for (;;) {
    const auto arrival = receive_message(channel_.native_handle(), false, message);
    if (arrival != ReceiveResult::Message) return arrival == ReceiveResult::Nothing && channel_.is_open();
    if (message.word == kConnectionMessage) {
      if (message.cut || message.lines.size() <= kLines || message.descriptors.size() != 1)
        callbacks_.lost();
      else
        callbacks_.take(connection_of(message));
    } else if (message.word == kHeld) {
      callbacks_.change_foreign_permits(message.lines);
    }
  }
}

// Reads the messages that have already arrived, and then closes the channel. After shutdown(2) for reading,
// no further messages can arrive.
void HandoffReceiver::end() {
  if (!channel_.is_open()) return;
  ::shutdown(channel_.native_handle(), SHUT_RD);
  (void)read_all();
  close();
}

void HandoffReceiver::close() noexcept {
  net::ErrorCode ignored;
  channel_.close(ignored);
}

}  // namespace weir::upgrade
