// A connection to a Redis or a Sentinel, plain or TLS: dialling, shaking hands, and bytes.
//
// Belongs to one worker. At most one of its coroutines waits at a time, and lives no longer than the wire.
#pragma once

#include "redis/connection/tls.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

namespace weir::redis {

class Wire {
 public:
  // `tls`: null for plain. Shared, for a store's wires are of one client and go in any order.
  Wire(net::Executor executor, std::shared_ptr<TlsClient> tls);
  ~Wire();

  // Closes what was open and connects, to the first address of the name that lets us: beginning with the one
  // that is kept to, or the one behind the last that let us in. A silent one has its share of `patience`,
  // which is how long whoever calls will wait. `address` outlives it. NoTls, or an error of the system's;
  // why() says it in words.
  [[nodiscard]] net::Awaitable<net::ErrorCode> open(const base::Endpoint& address, base::Duration patience);
  // The address that is open serves: the next open() begins with it.
  void keep_to_it() noexcept { begin_ = opened_; }
  // Some bytes, at least one unless there is an error.
  [[nodiscard]] net::Awaitable<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec);
  // All of it; the bytes outlive it. After a write that failed or was cancelled the wire may owe the rest of
  // a command, or of a TLS record: it sends nothing more until the next open().
  [[nodiscard]] net::Awaitable<net::ErrorCode> write(std::string_view bytes);

  // Sends what goes at once and takes it off `bytes`; would_block where the rest has to wait for room. How
  // often the socket was asked.
  [[nodiscard]] unsigned send(std::string& bytes, net::ErrorCode& ec);
  template <class Then>
  void wait_for_room(Then then) {
    socket_.async_wait(net::Socket::wait_write, std::move(then));
  }

  // Of the last error.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // Connected, and no handshake has come about yet.
  [[nodiscard]] bool is_shaking() const noexcept { return shaking_; }

  void cancel() noexcept;  // ends what waits
  void close() noexcept;

 private:
  struct Tls {
    TlsCodec codec;
    std::array<char, std::size_t{16} * 1024> input;
  };
  using Address = net::asio::ip::tcp::endpoint;
  net::Awaitable<net::ErrorCode> dial(const base::Endpoint& address, base::Duration patience);
  net::Awaitable<net::ErrorCode> dial_tcp(const base::Endpoint& address, base::Duration patience);
  net::Awaitable<net::ErrorCode> connect(const Address& address, base::Duration most);
  net::Awaitable<net::ErrorCode> shake_hands(const std::string& host);
  net::Awaitable<net::ErrorCode> feed();
  [[nodiscard]] unsigned send_some(std::string& bytes, net::ErrorCode& ec);
  [[nodiscard]] std::string words_for(const net::ErrorCode& ec) const;

  net::Socket socket_;
  net::asio::ip::basic_resolver<net::asio::ip::tcp, net::Executor> resolver_;
  net::Timer share_;  // of one address, while others are left
  std::optional<Address> opened_;
  std::optional<Address> begin_;  // with this one, the next time
  const std::shared_ptr<TlsClient> client_;
  std::unique_ptr<Tls> tls_;
  std::string why_;
  bool closed_ = true;
  bool cancelled_ = false;
  bool shaking_ = false;
  bool broken_ = false;  // a write did not end
  bool heard_ = false;   // of TLS: something has come that was sealed
};

}  // namespace weir::redis
