// The client's end of one request: gives the request's body, takes the answer, and knows whether the client
// still waits. Each protocol of clients has one implementation (Http1Stream).
//
// A request has one answer: try_answer(), begin_answer() or send_upgrade(), once. Interim answers may come
// before it.
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

namespace weir::proxy {

// What weir adds to a server's answer.
struct AnswerAdditions {
  std::string_view fields;    // complete field lines
  std::string_view date;      // an HTTP-date
  bool request_sent = false;  // the server has the whole request
};

class ClientStream {
 public:
  // All outlive it.
  ClientStream(Worker& a_worker, ClientWatch& a_watch, const ClientPeer& a_peer) noexcept
      : worker(a_worker), watch(a_watch), peer(a_peer) {}
  ClientStream(const ClientStream&) = delete;
  ClientStream& operator=(const ClientStream&) = delete;

  Worker& worker;
  ClientWatch& watch;
  const ClientPeer& peer;

  // The client speaks TLS, to this process or to the one that relays it.
  [[nodiscard]] virtual bool is_secure() const noexcept = 0;
  // The two ends of the connection as the client sees them; nothing if it is none over IP.
  [[nodiscard]] virtual std::optional<http::ConnectionEnds> ends() const = 0;
  // Octets of the request's head.
  [[nodiscard]] virtual std::size_t head_size() const noexcept = 0;
  // The body of the request.
  [[nodiscard]] BodySource& body() noexcept { return *body_; }

  // Asks the client for its body.
  [[nodiscard]] virtual net::Task<net::ErrorCode> send_continue() = 0;
  // Passes an interim answer of the server on, if the client knows them (RFC 9110 §15.2).
  [[nodiscard]] virtual net::Task<net::ErrorCode> send_interim(const http::ResponseHead& head) = 0;

  // Returns true if the client can take an answer: no other text is on its way to it.
  [[nodiscard]] virtual bool can_answer() const noexcept = 0;
  // Sends an answer of weir's own, as far as the client takes it at once. Returns what came of it, or nothing
  // if finish_answer() has to send the rest. If `answer.keep_alive`, what has come of the request's body is
  // dropped, so that the next request may follow.
  [[nodiscard]] virtual std::optional<net::ErrorCode> try_answer(http::Answer answer) = 0;
  [[nodiscard]] virtual net::Task<net::ErrorCode> finish_answer() = 0;
  // Begins a server's answer. Nothing is sent before the sink is flushed. The sink lives as long as this.
  [[nodiscard]] virtual BodySink& begin_answer(const http::ResponseHead& head,
                                               const AnswerAdditions& additions) = 0;
  // Octets of the answer that were sent, and that the client's system has not acknowledged.
  [[nodiscard]] virtual std::size_t unacknowledged() const noexcept = 0;
  // The answer has no end: makes sure that it cannot look complete.
  virtual void cut_answer() noexcept = 0;

  // Passes a server's 101 on. After that the octets of `stream` and `inbox` are the other protocol's.
  [[nodiscard]] virtual net::Task<net::ErrorCode> send_upgrade(const http::ResponseHead& head,
                                                               std::string_view protocol,
                                                               std::string_view fields) = 0;
  struct Octets {
    net::Stream& stream;
    Inbox& inbox;
  };
  [[nodiscard]] virtual Octets octets() noexcept = 0;

  // Ends what waits for the client.
  virtual void cancel() noexcept = 0;
  // Nobody takes the rest of the answer.
  virtual void close() noexcept = 0;

 protected:
  ~ClientStream() = default;

  BodySource* body_ = nullptr;  // once the head was read
};

}  // namespace weir::proxy
