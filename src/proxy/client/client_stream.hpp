// The client's side of one request: provides the request's body, sends the answer, and knows whether the
// client is still connected. Each version of HTTP has an implementation: Http1Stream and Http2Stream. Belongs
// to its worker.
//
// Each request gets one answer: exactly one call of try_answer(), begin_answer() or send_upgrade(). Interim
// answers may precede the answer. A question that weir admits gets none (proxy/ask/question_stream.hpp).
#pragma once

#include "proxy/client/client_peer.hpp"
#include "proxy/client/client_watch.hpp"

#include "weir/http/answer.hpp"
#include "weir/http/head.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/body_sink.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/proxy/worker.hpp"

#include <cstddef>
#include <optional>
#include <string_view>

namespace weir::ask {
struct Question;
}

namespace weir::proxy {

// Fields that weir adds to a server's answer.
struct AnswerAdditions {
  std::string_view fields;           // complete header lines
  std::string_view date;             // an HTTP-date
  bool request_sent = false;         // the server got the whole request
  bool trailers_may_follow = false;  // the body may have trailers, even if its length is known
};

class ClientStream {
 public:
  // All arguments must outlive the stream.
  ClientStream(Worker& a_worker, ClientWatch& a_watch, const ClientPeer& a_peer) noexcept
      : worker(a_worker), watch(a_watch), peer(a_peer) {}
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  Worker& worker;
  ClientWatch& watch;
  const ClientPeer& peer;

  // Returns true if the client uses TLS to this process, or to another weir process that relays the
  // connection.
  [[nodiscard]] virtual bool is_secure() const noexcept = 0;
  // Returns the name of the listener. The result is valid until the next wait. Empty: the listener has no
  // name.
  [[nodiscard]] virtual std::string_view listener_name() const noexcept = 0;
  // Returns the client's verified certificate as a value of Client-Cert (RFC 9440). Empty: the client has
  // none. The first call of a connection costs a few microseconds. The result is valid as long as the
  // connection.
  [[nodiscard]] virtual std::string_view certificate() = 0;
  // Returns the addresses of both ends of the connection as the client sees them. Returns nothing if the
  // connection does not use IP.
  [[nodiscard]] virtual std::optional<http::ConnectionEnds> ends() const = 0;
  // Returns the size of the request's head in octets.
  [[nodiscard]] virtual std::size_t head_size() const noexcept = 0;
  // Returns the question that the request describes; null if the request is to be forwarded. weir only
  // decides about a question.
  [[nodiscard]] virtual const ask::Question* question() const noexcept { return nullptr; }
  // Returns the body of the request.
  [[nodiscard]] BodySource& body() noexcept { return *body_; }

  // Sends 100 Continue, which asks the client to send its body.
  [[nodiscard]] virtual net::Task<net::ErrorCode> send_continue() = 0;
  // Forwards an interim answer of the server. Does nothing if the client's HTTP version has no interim
  // answers (RFC 9110 §15.2).
  [[nodiscard]] virtual net::Task<net::ErrorCode> send_interim(const http::ResponseHead& head) = 0;

  // Returns true if weir can send an answer. This is not possible after a message that was sent only in part.
  [[nodiscard]] virtual bool can_answer() const noexcept = 0;
  // Sends an answer that weir created, as far as the client accepts it at once. Returns the result, or
  // nullopt if finish_answer() must send the rest. If `answer.keep_alive` is true, drops the part of the
  // request's body that has arrived, so that the next request can follow.
  [[nodiscard]] virtual std::optional<net::ErrorCode> try_answer(http::Answer answer) = 0;
  [[nodiscard]] virtual net::Task<net::ErrorCode> finish_answer() = 0;
  // Starts a server's answer. The sink's flush() sends the head. The sink lives as long as this stream.
  [[nodiscard]] virtual BodySink& begin_answer(const http::ResponseHead& head,
                                               const AnswerAdditions& additions) = 0;
  // Returns the number of sent octets that the client's TCP has not acknowledged.
  [[nodiscard]] virtual std::size_t unacknowledged() const noexcept = 0;
  // Makes sure that a truncated answer cannot look complete.
  virtual void cut_answer() noexcept = 0;

  // Must be called after a server's 101. Tells the client that the protocol changes. Afterwards, the `stream`
  // and the `inbox` of octets() carry the new protocol.
  [[nodiscard]] virtual net::Task<net::ErrorCode> send_upgrade(const http::ResponseHead& head,
                                                               std::string_view protocol,
                                                               std::string_view fields) = 0;
  struct Octets {
    net::DuplexStream& stream;
    Inbox& inbox;
  };
  [[nodiscard]] virtual Octets octets() noexcept = 0;

  // Cancels every wait for the client.
  virtual void cancel() noexcept = 0;
  // Closes the connection. Must be called when the client does not read the rest of the answer.
  virtual void close() noexcept = 0;

 protected:
  ~ClientStream() = default;

  BodySource* body_ = nullptr;  // set once the head was read
};

}  // namespace weir::proxy
