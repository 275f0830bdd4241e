// A connected byte stream, plain or TLS, with one interface for both.
//
// Belongs to one worker. At most one read and one write wait at a time. cancel() and close() make a waiting
// read or write fail with operation_aborted. A write calls send(2) at once, and waits only if the socket's
// buffer is full.
#pragma once

#include "weir/net/byte_stream.hpp"
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

class Stream final : public DuplexStream {
 public:
  // Takes ownership of the descriptor of a stream socket. The socket must be connected, or begin_connect()
  // must connect it; for begin_connect(), the socket must be non-blocking.
  Stream(const Executor& executor, int fd);
  // Makes the server's end of a TLS connection. handshake() must precede all other calls. Until the client's
  // first octet arrives, the stream uses no more memory than a plain stream.
  Stream(const Executor& executor, int fd, SSL_CTX* context);
  // Makes the client's end of a TLS connection. handshake() must follow end_connect() and precede all other
  // calls.
  Stream(const Executor& executor, int fd, const TlsTarget& target);
  ~Stream();  // closes the connection
  Stream(Stream&& other) noexcept;
  Stream& operator=(Stream&&) = delete;

  // begin_connect() connects to a socket address of `size` bytes. If connecting takes time, begin_connect()
  // returns in_progress. Once the stream is writable, end_connect() returns the result. begin_connect()
  // returns would_block if the queue of a unix socket is full.
  [[nodiscard]] ErrorCode begin_connect(const void* address, std::size_t size) noexcept;
  [[nodiscard]] ErrorCode end_connect() noexcept;
  // Runs the handshake. Returns in_progress after processing much input without a pause; the caller must then
  // yield and call handshake() again.
  [[nodiscard]] Task<ErrorCode> handshake();
  // Runs one step of the handshake. Returns would_block if the next step must wait. In that case, sets
  // `wants_room`: true if the step waits until the stream is writable, false if it waits until the stream is
  // readable. Returns in_progress after processing much input; the next step may then follow once the stream
  // is readable.
  [[nodiscard]] ErrorCode try_handshake(bool& wants_room);

  // These functions read bytes that the peer sends before TLS. They must be called before handshake().
  // * peek() is like try_read(), but does not consume the bytes.
  // * wait_for_more() waits until more bytes are available.
  // * skip() consumes `size` bytes (at most 2048) that peek() has returned. Returns true on success.
  [[nodiscard]] std::size_t peek(char* at, std::size_t size, ErrorCode& ec) noexcept;
  [[nodiscard]] Port::Wait wait_for_more() noexcept;
  [[nodiscard]] bool skip(std::size_t size) noexcept;

  // Sends bytes before TLS begins. Must be called right after end_connect(): the send buffer is then empty,
  // and has room for all bytes. Returns no_buffer_space if there is too little room.
  [[nodiscard]] ErrorCode send_ahead(std::string_view proxy_header) noexcept;

  // Returns the subject of the client's verified certificate. For a resumed session, this is the certificate
  // of the original session. The subject has the form of RFC 4514, in ASCII: "CN=billing,O=Example". Empty if
  // the client has no certificate.
  [[nodiscard]] std::string peer_subject() const;
  // Returns the certificate of peer_subject() as a value of Client-Cert (RFC 9440): its DER in base64,
  // between two colons. Empty if the client has no certificate.
  [[nodiscard]] std::string peer_certificate() const;
  // Returns why the client's certificate was rejected, such as "certificate has expired". `ended`: the error
  // that handshake() returned. Empty if the handshake failed for another reason.
  [[nodiscard]] std::string_view rejection_reason(const ErrorCode& ended) const noexcept;

  // Returns true if the handshake failed because the peer sent an alert. `ended`: the error that handshake()
  // returned.
  [[nodiscard]] static bool was_alerted(const ErrorCode& ended) noexcept;
  // Returns true if the handshake resumed a session. Must be called after handshake().
  [[nodiscard]] bool is_resumed() const noexcept;

  // Returns the protocol that ALPN (RFC 7301) chose; empty: none. Must be called after handshake().
  [[nodiscard]] std::string_view protocol() const noexcept;

  // Returns why the handshake failed, as text for the log. `ended`: the error that handshake() returned.
  [[nodiscard]] std::string handshake_fault(const ErrorCode& ended) const;
  // Returns the TLS session; another connection to the same server may resume it. Null if there is none.
  [[nodiscard]] TlsSession session() const noexcept;

  // Reads available bytes. Returns 0 only with an error: eof at the end, would_block if no bytes are
  // available. Over TLS, connection_aborted means too many records without data (IdleRecords). REQUIRES size
  // > 0.
  [[nodiscard]] std::size_t try_read(char* at, std::size_t size, ErrorCode& ec) override;
  // Reads like try_read(), but waits until bytes are available, so it never fails with would_block.
  [[nodiscard]] Task<std::size_t> read_some(char* at, std::size_t size, ErrorCode& ec) override;

  // Starts to send a text that consists of `first` and then `second`. Sends as much as the socket accepts at
  // once. Returns the number of octets sent. It is no error if the socket's buffer is full. If the rest of
  // another text has not been sent yet, fails with StreamError::WriteOwed and sends nothing.
  [[nodiscard]] std::size_t try_write(std::string_view first, std::string_view second,
                                      ErrorCode& ec) override;
  // Continues the text that try_write() began. `first` and `second` together must start with the octets of
  // the text that were not sent. Further octets may follow. If no octet of the text was sent, try_rest()
  // begins the text. Returns the number of octets sent.
  [[nodiscard]] std::size_t try_rest(std::string_view first, std::string_view second, ErrorCode& ec) override;

  // Sends a whole text, or the rest of a text. Waits while the socket's buffer is full. The views must stay
  // valid until the task completes. If the write fails or is cancelled, owes_write() returns true until the
  // rest is sent.
  [[nodiscard]] Task<ErrorCode> write(std::string_view first, std::string_view second = {});
  [[nodiscard]] Task<ErrorCode> write_rest(std::string_view first, std::string_view second = {});

  // Returns true if only a part of a text was sent. The peer would read any other text as the missing rest.
  // So the caller must send the rest or close the connection. Over TLS the result may be true even if
  // try_write() returned 0. OpenSSL has then encrypted a record of the text, and must send this record first.
  [[nodiscard]] bool owes_write() const noexcept override { return owed_ > 0; }

  // Waits until bytes or the end of the connection can be read. Needs no buffer. Over TLS, waits for bytes on
  // the socket.
  [[nodiscard]] Port::Wait wait_readable() noexcept override {
    return port_ ? port_->readable() : Port::Wait(asio::error::bad_descriptor);
  }
  // Waits until try_rest() can continue.
  [[nodiscard]] Port::Wait wait_writable() noexcept override {
    return port_ ? port_->writable() : Port::Wait(asio::error::bad_descriptor);
  }

  // Returns the number of written bytes that the peer's system has not acknowledged, including unsent ones.
  [[nodiscard]] std::size_t unacknowledged() const noexcept;

  // Returns true if the event loop has seen that the peer closed its end or the connection broke.
  [[nodiscard]] bool peer_left() const noexcept { return port_ && port_->hung_up(); }
  // Returns true if the event loop has seen that the connection broke or was reset. Also returns true if the
  // peer closed its unix socket. A peer that closed its TCP socket looks like a peer that only stopped
  // sending, until weir writes to the connection.
  [[nodiscard]] bool peer_broke() const noexcept { return port_ && port_->broken(); }
  // Returns true if no bytes seem to wait to be read, and the event loop has not seen the end of the
  // connection. May return false although no bytes wait, after a read that returned as many bytes as it asked
  // for.
  [[nodiscard]] bool is_quiet() const noexcept {
    return port_ && !port_->may_read() && !port_->hung_up() && !has_pending();
  }
  // Returns true if the TLS buffers contain bytes that try_read() has not returned yet.
  [[nodiscard]] bool has_pending() const noexcept;
  // Frees memory that an idle connection does not need.
  void trim() noexcept override;

  void cancel() noexcept override;
  // Sends close_notify (TLS) and FIN. Reading remains possible. While owes_write() is true, sends no
  // close_notify, so that the peer sees the truncation.
  void shutdown_send() noexcept override;
  void close() noexcept;

  [[nodiscard]] bool is_tls() const noexcept { return tls_ != nullptr || context_ != nullptr; }
  // Returns true if weir ended the connection because the peer sent too many TLS records without data.
  [[nodiscard]] bool had_too_many_records() const noexcept;
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }
  [[nodiscard]] int native_handle() const noexcept { return fd_; }

 private:
  struct Tls;

  // The other constructors delegate to this constructor. If a delegating constructor throws, the destructor
  // then closes the descriptor.
  explicit Stream(int fd) noexcept;

  [[nodiscard]] std::size_t send_plain(std::string_view first, std::string_view second,
                                       ErrorCode& ec) noexcept;
  [[nodiscard]] std::size_t send_tls(std::string_view first, std::string_view second, ErrorCode& ec) noexcept;
  [[nodiscard]] std::size_t receive(char* at, std::size_t size, ErrorCode& ec) noexcept;
  [[nodiscard]] std::size_t read_records(char* at, std::size_t size, ErrorCode& ec);
  [[nodiscard]] std::size_t read_record(char* at, std::size_t size, ErrorCode& ec);
  [[nodiscard]] ErrorCode feed();
  [[nodiscard]] ErrorCode begin_tls();
  [[nodiscard]] ErrorCode send_outgoing() noexcept;

  int fd_;
  std::size_t owed_ = 0;  // octets of the current text that were not sent
  TlsContext context_;    // tls_ is made with this context when the first bytes arrive
  std::unique_ptr<Port> port_;
  std::unique_ptr<Tls> tls_;
};

}  // namespace weir::net
