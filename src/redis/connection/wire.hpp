// A connection to a Redis server or a Sentinel, plain or TLS: connect, handshake, and bytes.
//
// Belongs to one worker. At most one of its coroutines runs at a time, and none outlives the wire.
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
  // `tls`: null for no TLS. Shared, because all wires of a store use one client and may end in any order.
  Wire(net::Executor executor, std::shared_ptr<TlsClient> tls);
  ~Wire();

  // Closes the current connection and connects to the first address of the name that accepts. Begins with the
  // address of keep_to_it(), or with the one after the last that accepted. `patience` is the caller's
  // deadline; each address gets a share of it. `address` must outlive the coroutine. Returns NoTls or a
  // system error; why() describes it.
  [[nodiscard]] net::Task<net::ErrorCode> open(const base::Endpoint& address, base::Duration patience);
  // Makes the next open() begin with the current address, because it serves.
  void keep_to_it() noexcept { begin_ = opened_; }
  // Reads at least one byte, unless there is an error.
  [[nodiscard]] net::Task<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec);
  // Writes all bytes, which must outlive the coroutine. After a failed or cancelled write, the wire may owe
  // the rest of a command or of a TLS record. It then sends nothing more until the next open().
  [[nodiscard]] net::Task<net::ErrorCode> write(std::string_view bytes);

  // Sends what the socket accepts at once and removes it from `bytes`. Sets would_block if the rest must wait
  // for room. Returns the number of send calls.
  [[nodiscard]] unsigned send(std::string& bytes, net::ErrorCode& ec);
  template <class Then>
  void wait_for_room(Then then) {
    socket_.async_wait(net::Socket::wait_write, std::move(then));
  }

  // Describes the last error.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }
  // Returns true if the wire is connected and its TLS handshake has not finished.
  [[nodiscard]] bool is_shaking() const noexcept { return shaking_; }

  void cancel() noexcept;  // ends the current wait
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
  net::Timer share_;  // bounds the attempt at one address while others remain
  std::optional<Address> opened_;
  std::optional<Address> begin_;  // the address that the next open() begins with
  const std::shared_ptr<TlsClient> client_;
  std::unique_ptr<Tls> tls_;
  std::string why_;
  bool closed_ = true;
  bool cancelled_ = false;
  bool shaking_ = false;
  bool broken_ = false;  // a write did not finish
  bool heard_ = false;   // sealed data has arrived over TLS
};

}  // namespace weir::redis
