// A connection to a Redis server or a Sentinel, with or without TLS: connects, does the TLS handshake, and
// moves bytes.
//
// Belongs to one worker. At most one coroutine of a wire runs at a time, and the coroutine must end before
// the wire is destroyed.
#pragma once

#include "redis/connection/tls.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"

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
  // `tls`: null for a connection without TLS. Shared, because all wires of a store use one TlsClient, and the
  // wires may be destroyed in any order.
  Wire(net::Executor executor, std::shared_ptr<TlsClient> tls);
  ~Wire();

  // Closes the current connection, resolves the name in `address`, and connects to the first resolved address
  // that accepts. Begins with the address for which keep_to_it() was called, or else with the address after
  // the last one that accepted. `patience`: how long the caller waits; each address gets a part of this time.
  // `address` must outlive the coroutine. Returns NoTls or a system error; why() describes the error.
  [[nodiscard]] net::Task<net::ErrorCode> open(const base::Endpoint& address, base::Duration patience);
  // Makes the next open() begin with the current address. Must be called if the server at the current address
  // works.
  void keep_to_it() noexcept { begin_ = opened_; }
  // Reads at least one byte, or sets `ec`.
  [[nodiscard]] net::Task<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec);
  // Writes all bytes, which must outlive the coroutine. If a write fails or is cancelled, only a part of a
  // command or TLS record may have been sent. The wire then sends nothing more until the next open().
  [[nodiscard]] net::Task<net::ErrorCode> write(std::string_view bytes);

  // Sends as many bytes as the socket accepts at once, and removes them from `bytes`. Sets `ec` to
  // would_block if bytes remain. Returns the number of system calls.
  [[nodiscard]] unsigned send(std::string& bytes, net::ErrorCode& ec);
  template <class Then>
  void wait_for_room(Then then) {
    socket_.async_wait(net::Socket::wait_write, std::move(then));
  }

  // Describes the last error.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // Returns true if the wire is connected and the TLS handshake is still in progress.
  [[nodiscard]] bool is_shaking() const noexcept { return shaking_; }

  void cancel() noexcept;  // ends the current wait for the socket
  void close() noexcept;

 private:
  struct Tls {
    TlsCodec codec;
    std::array<char, std::size_t{16} * 1024> input;
  };
  using Address = net::asio::ip::tcp::endpoint;
  net::Task<net::ErrorCode> dial(const base::Endpoint& address, base::Duration patience);
  net::Task<net::ErrorCode> dial_tcp(const base::Endpoint& address, base::Duration patience);
  net::Task<net::ErrorCode> connect(const Address& address, base::Duration most);
  net::Task<net::ErrorCode> shake_hands(const std::string& host);
  net::Task<net::ErrorCode> feed();
  [[nodiscard]] unsigned send_some(std::string& bytes, net::ErrorCode& ec);
  [[nodiscard]] std::string words_for(const net::ErrorCode& ec) const;

  net::Socket socket_;
  net::asio::ip::basic_resolver<net::asio::ip::tcp, net::Executor> resolver_;
  net::Timer share_;  // limits the attempt at one address if there are other addresses to try
  std::optional<Address> opened_;
  std::optional<Address> begin_;  // the address that the next open() begins with
  const std::shared_ptr<TlsClient> client_;
  std::unique_ptr<Tls> tls_;
  std::string why_;
  bool closed_ = true;
  bool cancelled_ = false;
  bool shaking_ = false;
  bool broken_ = false;    // true: a write sent only a part of its bytes
  bool received_ = false;  // true: data has arrived over TLS, after the handshake
};

}  // namespace weir::redis
