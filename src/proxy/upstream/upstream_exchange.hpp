// Forwards a request to its upstream and relays the answer. Leases a server and sends the request. Tries
// another server if the first one failed and another may succeed.
//
// Lives in the coroutine frame of Exchange::forward(). Sends no answer of its own: if run() returns an error,
// the exchange answers it.
#pragma once

#include "proxy/upstream/answer_relay.hpp"
#include "proxy/upstream/protocol_upgrade.hpp"
#include "proxy/upstream/server_attempt.hpp"
#include "proxy/upstream/upload.hpp"

#include "weir/net/task.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace weir::proxy {

class UpstreamExchange {
 public:
  // Both references must outlive this object. `priority`: the request's priority in the upstream's queue.
  // `pacing`: paces the bodies; may be null. If the whole request body arrived with the head, the caller has
  // already counted it in `pacing`.
  UpstreamExchange(ExchangeContext& context, upstream::Pool& pool, policy::Priority priority,
                   std::unique_ptr<Pacing> pacing)
      : context_(context),
        attempt_(context, pool),
        in_flight_(attempt_.tallies.in_flight),
        priority_(priority) {
    attempt_.pacing = std::move(pacing);
  }

  [[nodiscard]] net::Task<Outcome> run();
  void cancel() noexcept;  // ends every wait

 private:
  // The next step after an attempt.
  enum class Next : std::uint8_t {
    Try,     // lease a server and send the request
    Retry,   // try another server, if a server is left, time remains and the retry budget allows a retry
    Answer,  // forward this server's answer to the client
    GiveUp,
  };
  // Why a server sent no answer that weir can forward. If several reasons apply, the first in this list
  // counts.
  enum class Failure : std::uint8_t {
    Refused,  // the server has not processed the request, and said so (RFC 9113 §8.7)
    Stale,    // the server may have closed an idle connection before it got the request
    Owed,     // the server may have waited too long for the rest of the body, which the client has not sent
    Broken,   // the server failed, or answered too late
  };
  void begin_request();
  [[nodiscard]] net::Task<bool> admit_messages();
  [[nodiscard]] net::Task<bool> exchange_heads();
  void send_request();
  void start_upload(std::size_t sent);
  [[nodiscard]] net::Task<void> pass_interim(bool reads_on);
  [[nodiscard]] net::Task<net::ErrorCode> send_interim();
  [[nodiscard]] net::Task<bool> send_pending_continue();
  void begin_body() noexcept;
  void note_silence(const net::ErrorCode& why);
  [[nodiscard]] Next judge_answer();
  [[nodiscard]] Next judge_failure();
  [[nodiscard]] Failure find_failure() const noexcept;
  void blame_server();
  [[nodiscard]] bool is_body_complete() const noexcept { return context_.client.body().complete(); }
  [[nodiscard]] bool is_failed_answer() const noexcept;
  [[nodiscard]] net::Task<bool> retry();
  [[nodiscard]] net::Task<std::optional<Outcome>> take_answer();
  [[nodiscard]] Outcome give_up();
  [[nodiscard]] bool is_request_sent() const noexcept { return !upload_ || upload_->is_sent(); }

  ExchangeContext& context_;
  ServerAttempt attempt_;
  const observe::ScopedCount in_flight_;
  const policy::Priority priority_;
  std::unique_ptr<MessageGate> from_client_;  // limits the client's gRPC messages; null: no limit
  std::unique_ptr<MessageGate> from_server_;  // limits the server's gRPC messages; null: no limit
  std::unique_ptr<Upload> upload_;            // set if the request could not be sent at once
  std::optional<AnswerRelay> relay_;
  std::optional<ProtocolUpgrade> protocol_upgrade_;
};

}  // namespace weir::proxy
