// One request and its answer: identifies the client, decides, then refuses, delays or forwards the request.
// Reports every request, however it ends. An exchange lives in the coroutine frame that serves the request,
// on the worker's thread.
#pragma once

#include "proxy/exchange/exchange_context.hpp"
#include "proxy/exchange/local_reply.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/upstream/pool.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace weir::proxy {

class Pacing;
class QueueWait;
class TokenKeyWait;
class UpstreamExchange;

class Exchange {
 public:
  // `client` must outlive the exchange.
  explicit Exchange(ClientStream& client) : context_(client) {}
  ~Exchange();  // refunds charges unless keep() was called, and reports the request
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Returns the buffers for the request's head and for the octets that weir sends.
  [[nodiscard]] ExchangeBuffers& buffers() noexcept { return context_.buffers; }
  // Serves the request. REQUIRES that buffers() contains the request's head.
  [[nodiscard]] net::Task<Ending> run();

  void cancel() noexcept;  // ends each wait for a departure, a key or an upstream

  // Only for questions. Returns the context: its report has the decision, and its functions settle or refund
  // the charges.
  [[nodiscard]] ExchangeContext& context() noexcept { return context_; }

 private:
  [[nodiscard]] bool is_challenge();
  [[nodiscard]] net::Task<Ending> take_preflight();
  [[nodiscard]] net::Task<Ending> show_usage();
  [[nodiscard]] bool is_rejected_unverified(AdmissionResult& admission_result);
  [[nodiscard]] std::optional<policy::TokenVerifier::KeySource> lacking_keys();
  [[nodiscard]] bool needs_token_to_decide() const;
  void verify_token();
  [[nodiscard]] net::Task<Ending> wait_for_key(policy::TokenVerifier::KeySource source);
  [[nodiscard]] net::Task<Ending> inspect();
  [[nodiscard]] net::Task<Ending> read_body();
  // The functions below are not coroutines. If nothing needs to wait, the returned task has already ended.
  [[nodiscard]] net::Task<Ending> verify_and_decide();
  [[nodiscard]] net::Task<Ending> decide();
  [[nodiscard]] net::Task<Ending> ask_redis();
  [[nodiscard]] net::Task<Ending> apply_decision(const AdmissionResult& admission_result);
  [[nodiscard]] net::Task<Ending> wait_in_queue();
  [[nodiscard]] net::Task<Ending> pass_on();
  [[nodiscard]] net::Task<Ending> admit_question();
  [[nodiscard]] net::Task<Ending> forward(upstream::Pool& pool);
  [[nodiscard]] net::Task<bool> hold_body(Pacing& pacing, base::Duration patience);
  [[nodiscard]] bool is_taken_over() const noexcept;
  [[nodiscard]] net::Task<Ending> give_up_waiting();
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;

  ExchangeContext context_;
  LocalReply reply_{context_};
  policy::Priority priority_ = policy::kDefaultPriority;
  bool begun_ = false;
  bool in_flight_ = false;                  // true while the worker's InFlight counts the request
  TokenKeyWait* token_key_wait_ = nullptr;  // set while the request waits for the key of its token
  QueueWait* queue_wait_ = nullptr;         // set while the request waits in a queue
  Pacing* pacing_ = nullptr;                // set while the body waits before it is forwarded
  UpstreamExchange* upstream_ = nullptr;    // set while the request is being forwarded
};

}  // namespace weir::proxy
