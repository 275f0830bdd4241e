// A connected byte stream, plain or TLS: one vocabulary for both, so that nothing above cares.
//
// Belongs to one worker. At most one read and one write wait at a time; cancel() ends both with
// operation_aborted, and so does close(). Writes go straight to the socket, which nearly always takes a small
// answer whole; only what does not fit waits.
#pragma once

#include "weir/net/reactor.hpp"
#include "weir/net/stream_error.hpp"
#include "weir/net/task.hpp"
#include "weir/net/tls_client.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/error.hpp>
#include <openssl/ssl.h>

namespace weir::net {

class Stream {
 public:
  // Takes the descriptor of a stream socket over, connected or about to be.
  Stream(const Executor& executor, int fd);
  // The server's end of TLS; handshake() must come before anything else. Until a client's first octet it
  // costs no more than a plain one.
  Stream(const Executor& executor, int fd, SSL_CTX* context);
  // The client's end: handshake() comes after end_connect(), and before anything else.
  Stream(const Executor& executor, int fd, const TlsTarget& target);
  ~Stream();  // closes
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;

  // Connects to a socket address of `size` bytes: in_progress where it takes a while, and what came of it
  // end_connect() tells once the stream is writable. (would_block: the queue of a unix socket is full.)
  [[nodiscard]] ErrorCode begin_connect(const void* address, std::size_t size) noexcept;
  [[nodiscard]] ErrorCode end_connect() noexcept;
  // in_progress: so much came at once that others should have their turn before this is called once more.
  [[nodiscard]] Task<ErrorCode> handshake();
  // A step of it: would_block where the next one has to wait, until the stream is readable, or writable where
  // it `wants_room`.
  [[nodiscard]] ErrorCode try_handshake(bool& wants_room);

  // Before handshake(), of what stands before TLS: copies what is there without taking it, as try_read() does
  // otherwise; waits until more than that is there; takes `size` bytes of it,
  // which were seen, at most 2048.
  [[nodiscard]] std::size_t peek(char* at, std::size_t size, ErrorCode& ec) noexcept;
  [[nodiscard]] Port::Wait wait_for_more() noexcept;
  [[nodiscard]] bool skip(std::size_t size) noexcept;

  // Likewise, after end_connect(): sends what stands ahead of TLS, which a connection that has sent nothing
  // yet takes whole.
  [[nodiscard]] ErrorCode send_ahead(std::string_view preamble) noexcept;

  // The subject of the certificate that the client showed and that was verified, in this session or in the
  // one that it resumes: RFC 4514, "CN=billing,O=Example", ASCII alone. Empty where it showed none.
  [[nodiscard]] std::string peer_subject() const;
  // Why the handshake that ended so did not believe the client's certificate: "certificate has expired".
  // Empty where it failed for another reason.
  [[nodiscard]] std::string_view distrust(const ErrorCode& ended) const noexcept;

  // Whether the handshake that ended so was ended by an alert of the peer's.
  [[nodiscard]] static bool was_alerted(const ErrorCode& ended) noexcept;
  // After handshake(): whether it resumed a session.
  [[nodiscard]] bool is_resumed() const noexcept;

  // Why the handshake that ended so failed, in words for the log.
  [[nodiscard]] std::string handshake_fault(const ErrorCode& ended) const;
  // The session to be resumed by another connection to the same server; null where there is none.
  [[nodiscard]] TlsSession session() const noexcept;

  // Reads what is there: 0 comes with an error, eof at the end, would_block when there is nothing yet. Of TLS
  // connection_aborted where the peer keeps it busy without a word; see IdleRecords. REQUIRES room for a
  // byte: there is no telling one read of none from the end.
  [[nodiscard]] std::size_t try_read(char* at, std::size_t size, ErrorCode& ec);
  // The same, waiting for bytes: never would_block.
  [[nodiscard]] Task<std::size_t> read_some(char* at, std::size_t size, ErrorCode& ec);

  // Begins a text: sends as much of `first`, then `second`, as the socket takes at once, and returns how many
  // octets that were. A full socket is no error. Fails with StreamError::WriteOwed, and sends nothing, while
  // the stream owes the rest of another text.
  [[nodiscard]] std::size_t try_write(std::string_view first, std::string_view second, ErrorCode& ec);
  // Goes on with the text that try_write() began: `first` and `second` begin with the octets that were not
  // taken, and more may follow them. If no octet of the text is on its way, this begins it.
  [[nodiscard]] std::size_t try_rest(std::string_view first, std::string_view second, ErrorCode& ec);

  // Sends a whole text, or the rest of one, and waits for room. The views must stay valid until it completes.
  // If it fails, or is cancelled, the stream owes what was not sent.
  [[nodiscard]] Task<ErrorCode> write(std::string_view first, std::string_view second = {});
  [[nodiscard]] Task<ErrorCode> write_rest(std::string_view first, std::string_view second = {});

  // Returns true if a part of a text is on its way and the rest is not. The peer would take any other text
  // for that rest, so the connection can only finish the text or end. Over TLS this may be true though
  // try_write() returned 0: OpenSSL holds a sealed record of the text, and sends it before anything else.
  [[nodiscard]] bool owes_write() const noexcept { return owed_ > 0; }

  // Waits until bytes can be read (or the end can), without a buffer. For TLS: until the socket has some.
  [[nodiscard]] Port::Wait wait_readable() noexcept {
    return port_ ? port_->readable() : Port::Wait(asio::error::bad_descriptor);
  }
  // Waits until try_rest() can go on.
  [[nodiscard]] Port::Wait wait_writable() noexcept {
    return port_ ? port_->writable() : Port::Wait(asio::error::bad_descriptor);
  }

  // Bytes that were sent and that the peer's system has not acknowledged, or was not even sent.
  [[nodiscard]] std::size_t unacknowledged() const noexcept;

  // The peer closed its end or the connection broke, as far as the loop has heard.
  [[nodiscard]] bool peer_left() const noexcept { return port_ && port_->hung_up(); }
  // Returns true if the connection broke or was reset, as far as the loop has heard. A peer that closed its
  // unix socket is noticed so as well. One that closed its TCP socket looks like one that only ended its
  // sending, until something is written to it.
  [[nodiscard]] bool peer_broke() const noexcept { return port_ && port_->broken(); }
  // Nothing came since the last read took all there was, and the connection stands, as far as the loop has
  // heard.
  [[nodiscard]] bool is_quiet() const noexcept {
    return port_ && !port_->may_read() && !port_->hung_up() && !has_pending();
  }
  // Bytes that were received and not yet read, in TLS's buffers.
  [[nodiscard]] bool has_pending() const noexcept;
  // Gives back what an idle connection does not need.
  void trim() noexcept;

  void cancel() noexcept;
  // Sends close_notify (TLS) and FIN; reading goes on. Sends no close_notify while a write is owed, so that
  // the peer sees that the text was cut off.
  void shutdown_send() noexcept;
  void close() noexcept;

  [[nodiscard]] bool is_tls() const noexcept { return tls_ != nullptr || context_ != nullptr; }
  // It was ended for its records without data.
  [[nodiscard]] bool had_too_many_records() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int native_handle() const noexcept { return fd_; }

 private:
  struct Tls;

  explicit Stream(int fd) noexcept;  // so that the descriptor is closed when the rest of construction throws

  [[nodiscard]] std::size_t send_plain(std::string_view first, std::string_view second,
                                       ErrorCode& ec) noexcept;
  [[nodiscard]] std::size_t send_tls(std::string_view first, std::string_view second, ErrorCode& ec) noexcept;
  [[nodiscard]] std::size_t receive(char* at, std::size_t size, ErrorCode& ec) noexcept;
  [[nodiscard]] ErrorCode feed();
  [[nodiscard]] ErrorCode begin_tls();

  int fd_;
  std::size_t owed_ = 0;  // octets of the text under way that were not taken
  TlsContext context_;    // what tls_ is to be made with, once there is something to read
  std::unique_ptr<Port> port_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace weir::net
