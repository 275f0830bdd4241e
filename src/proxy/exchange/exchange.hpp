// One request and its answer: identify, decide, then refuse, delay or forward; and a report of it on every
// ending.
#pragma once

#include "proxy/exchange/exchange_context.hpp"
#include "proxy/exchange/local_reply.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/signal.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/upstream/pool.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace weir::proxy {

class QueueWait;
class Session;
class Tunnel;

class Exchange {
 public:
  explicit Exchange(Session& session);
  ~Exchange();  // refunds what nobody kept, and accounts for the request
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Reads the head that stands at the front of the session's inbox, and pins it there.
  [[nodiscard]] std::optional<http::Fault> read_head(std::size_t size);

  // What read_head() read, as it came.
  [[nodiscard]] std::string_view head_bytes() const noexcept { return head_bytes_; }

  [[nodiscard]] net::Task<Ending> run();
  // After Ending::DropRest: what the client still sends of a request that was answered, within a bound.
  [[nodiscard]] const BodySource& rest_of_body() const noexcept { return *context_.request_body; }

  void cancel() noexcept;  // ends whatever waits: a departure, an upstream

 private:
  [[nodiscard]] bool is_rejected_unverified(AdmissionResult& admission_result);
  void verify_token();
  [[nodiscard]] net::Task<Ending> inspect();
  [[nodiscard]] net::Task<Ending> read_body();
  // What can be said without waiting is said in plain functions: the task that they return has ended already.
  [[nodiscard]] net::Task<Ending> decide();
  [[nodiscard]] net::Task<Ending> ask_redis();
  [[nodiscard]] net::Task<Ending> apply_decision(const AdmissionResult& admission_result);
  [[nodiscard]] net::Task<Ending> wait_in_queue();
  [[nodiscard]] net::Task<Ending> pass_on();
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;

  // Where the exchange with the upstream stands; what each step hands to the next.
  struct Attempt;
  [[nodiscard]] net::Task<Ending> forward(upstream::Pool& pool);
  void write_request(Attempt& attempt);
  void write_head(const Attempt& attempt, std::string_view host);
  void begin_attempts(upstream::Pool& pool, Attempt& attempt);
  void arm(Attempt& attempt, base::Duration wait) noexcept;
  [[nodiscard]] bool lease_server(upstream::Pool& pool, Attempt& attempt);
  [[nodiscard]] net::Task<bool> wait_for_server(upstream::Pool& pool, Attempt& attempt);
  void note_full_servers(Attempt& attempt);
  [[nodiscard]] net::Task<bool> prepare_retry(upstream::Pool& pool, Attempt& attempt);
  [[nodiscard]] bool is_retryable_answer(const Attempt& attempt) const noexcept;
  [[nodiscard]] bool is_failed_answer(const upstream::Pool& pool, const Attempt& attempt) const noexcept;
  [[nodiscard]] net::Task<bool> repeat(upstream::Pool& pool, Attempt& attempt);
  [[nodiscard]] net::Task<void> pause(base::Duration wait);
  void note_pause(upstream::Pool& pool);
  [[nodiscard]] net::Task<bool> connect(upstream::Pool& pool, Attempt& attempt);
  [[nodiscard]] net::Task<bool> exchange_heads(upstream::Pool& pool, Attempt& attempt);
  enum class HeadState : std::uint8_t { Missing, Interim, Whole, Faulty };
  [[nodiscard]] HeadState look_at_answer(Attempt& attempt, std::size_t& searched);
  void note_silence(Attempt& attempt);
  void note_answer() noexcept;
  void note_lasting_answer(const upstream::Pool& pool) noexcept;
  [[nodiscard]] net::Task<net::ErrorCode> relay_interim(Attempt& attempt);
  [[nodiscard]] net::Task<Ending> relay_answer(upstream::Pool& pool, Attempt& attempt);
  [[nodiscard]] bool may_upgrade(Attempt& attempt) const noexcept;
  [[nodiscard]] net::Task<Ending> tunnel(upstream::Pool& pool, const Attempt& attempt);
  [[nodiscard]] Ending leave_tunnel(observe::TunnelEnd end);
  [[nodiscard]] net::Task<Relay::Need> relay_rest(upstream::Pool& pool, Relay& relay, Relay::Need need);
  struct ClientReading;  // how a client takes its answer
  [[nodiscard]] bool keeps_reading(ClientReading& reading, base::Duration waited, std::uint64_t sent,
                                   const net::ErrorCode& ec);
  [[nodiscard]] net::Task<Ending> abort_answer(Attempt& attempt, const Relay& relay, Relay::Need need,
                                               bool until_close);
  [[nodiscard]] net::Task<void> drain_answer(const upstream::Pool& pool, BodySource& body);
  [[nodiscard]] net::Task<Ending> give_up(Attempt& attempt);
  [[nodiscard]] bool body_failed() const noexcept;
  [[nodiscard]] bool is_request_sent() const noexcept;
  void note_body_fault(unsigned status);
  [[nodiscard]] net::Task<Ending> refuse_body(unsigned status);
  [[nodiscard]] observe::UpstreamTallies& tallies() noexcept;
  bool count_failure() noexcept;  // whether the server is to blame
  [[nodiscard]] bool is_theirs() const noexcept;
  [[nodiscard]] net::Task<void> upload(Attempt& attempt);
  void await_more(Attempt& attempt, bool reading) noexcept;
  void arm_since_head(Attempt& attempt, base::Duration time) noexcept;
  void await_continue(Attempt& attempt) noexcept;
  [[nodiscard]] bool continue_is_overdue() const noexcept;
  [[nodiscard]] net::Task<bool> prompt_client(Attempt& attempt);
  void begin_body(Attempt& attempt) noexcept;
  void end_body(Attempt& attempt) noexcept;
  [[nodiscard]] net::Signal::Wait end_upload() noexcept;
  void start_upload(const upstream::Pool& pool, Attempt& attempt, std::size_t sent);
  [[nodiscard]] bool repeatable(const Attempt& attempt) const noexcept;

  ExchangeContext context_;
  LocalReply reply_{context_};
  std::string_view head_bytes_;
  policy::Priority priority_ = policy::kDefaultPriority;
  bool begun_ = false;
  bool in_flight_ = false;           // counted by the worker's InFlight
  QueueWait* queue_wait_ = nullptr;  // while it lasts
  upstream::Lease lease_;
  net::Timer* pause_ = nullptr;  // between two attempts
  Tunnel* tunnel_ = nullptr;     // while it lasts
  struct Upload;
  std::unique_ptr<Upload> upload_;  // of a request that could not be sent at once
  bool client_stalls_ = false;      // it does not take the answer that waits for it
  bool slow_ = false;               // it takes its answer slower than min_rate
};

}  // namespace weir::proxy
