#include "weir/net/connect.hpp"

#include <cerrno>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace weir::net {

Task<ErrorCode> connect_to(Executor executor, const std::vector<RawEndpoint>& addresses,
                           std::string_view preamble, std::optional<TlsTarget> tls,
                           std::unique_ptr<Stream>& stream, std::string& fault) {
  ErrorCode ec = asio::error::host_unreachable;
  for (const auto& address : addresses) {
    const auto family = address.protocol().family();
    const int fd = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {  // out of descriptors, or a family that this host lacks
      ec = ErrorCode(errno, boost::system::system_category());
      continue;
    }
    if (family != AF_UNIX) {
      const int on = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    stream = tls ? std::make_unique<Stream>(executor, fd, *tls) : std::make_unique<Stream>(executor, fd);
    ec = co_await stream->connect(address.data(), address.size());
    if (!ec && !preamble.empty()) ec = stream->send_ahead(preamble);
    if (!ec && tls) {
      ec = co_await stream->handshake();
      if (ec && ec != asio::error::operation_aborted)
        fault = "its TLS handshake failed: " + stream->handshake_fault(ec);
    }
    if (!ec) co_return ec;
    stream.reset();
    if (ec == asio::error::operation_aborted) break;
  }
  co_return ec;
}

}  // namespace weir::net
