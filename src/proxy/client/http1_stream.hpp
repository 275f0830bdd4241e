// One request of an HTTP/1.1 connection and its answer. The stream lives in the coroutine frame of
// Session::serve_one().
#pragma once

#include "proxy/client/client_stream.hpp"
#include "proxy/exchange/ending.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/proxy/http1_sink.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

class Session;

class Http1Stream final : public ClientStream {
 public:
  // The session must outlive this stream.
  explicit Http1Stream(Session& session) noexcept;

  // Parses the head at the front of the session's inbox. Returns the fault of a malformed head; nullopt if
  // the head is good. Pins the octets of the head until the session unpins them. `out` is the buffer for text
  // to send. `head` and `out` must outlive the exchange.
  [[nodiscard]] std::optional<http::Fault> read_head(std::size_t size, http::RequestHead& head,
                                                     std::string& out);
  // Returns the octets that read_head() parsed.
  [[nodiscard]] std::string_view head_bytes() const noexcept { return head_bytes_; }

  // How the session continues with the connection after the exchange.
  enum class Next : std::uint8_t {
    KeepAlive,  // serve the next request
    DropRest,   // drop the rest of the request's body, then serve the next request
    Linger,     // close once the client has had time to read the answer
    Close,      // close at once
    Abort,      // close so that the incomplete answer cannot look complete
  };
  [[nodiscard]] Next after(Ending ending) const noexcept;
  // Must be called before the exchange ends. Forgets the buffers of the exchange. Afterwards only body() may
  // be used.
  void forget_exchange() noexcept;

  [[nodiscard]] bool is_secure() const noexcept override;
  [[nodiscard]] std::string_view listener_name() const noexcept override;
  [[nodiscard]] std::string_view certificate() override;
  [[nodiscard]] std::optional<http::ConnectionEnds> ends() const override;
  [[nodiscard]] std::size_t head_size() const noexcept override { return head_bytes_.size(); }
  [[nodiscard]] net::Task<net::ErrorCode> send_continue() override;
  [[nodiscard]] net::Task<net::ErrorCode> send_interim(const http::ResponseHead& head) override;
  [[nodiscard]] bool can_answer() const noexcept override;
  [[nodiscard]] std::optional<net::ErrorCode> try_answer(http::Answer answer) override;
  [[nodiscard]] net::Task<net::ErrorCode> finish_answer() override;
  [[nodiscard]] BodySink& begin_answer(const http::ResponseHead& head,
                                       const AnswerAdditions& additions) override;
  [[nodiscard]] std::size_t unacknowledged() const noexcept override;
  void cut_answer() noexcept override;
  [[nodiscard]] net::Task<net::ErrorCode> send_upgrade(const http::ResponseHead& head,
                                                       std::string_view protocol,
                                                       std::string_view fields) override;
  [[nodiscard]] Octets octets() noexcept override;
  void cancel() noexcept override;
  void close() noexcept override;

 private:
  [[nodiscard]] bool drop_body();

  Session& session_;
  const http::RequestHead* head_ = nullptr;
  std::string* out_ = nullptr;
  std::string interim_;   // the text of an interim answer
  std::size_t sent_ = 0;  // number of octets sent of an answer that weir created
  std::string_view head_bytes_;
  std::optional<BodySource> source_;
  std::optional<Http1Sink> sink_;
  bool keep_alive_ = false;   // the answer says that the connection stays open
  bool until_close_ = false;  // the end of the connection marks the end of the answer
};

}  // namespace weir::proxy
