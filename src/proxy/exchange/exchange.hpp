// One request and its answer: identify, decide, then refuse, delay or forward; and a report of it on every
// ending.
#pragma once

#include "proxy/admission/admission_controller.hpp"
#include "proxy/exchange/exchange_buffers.hpp"
#include "proxy/exchange/pre_check.hpp"
#include "proxy/exchange/request_report.hpp"

#include "weir/http/answer.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/signal.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/proxy/shaper.hpp"
#include "weir/upstream/pool.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

class Session;
class Tunnel;
class Worker;

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

  enum class Ending : std::uint8_t {
    KeepAlive,  // the next request can follow
    DropRest,   // it can once rest_of_body() was dropped
    Linger,     // close, but let the client read what was answered
    Close,      // close at once
    Abort,      // close so that what was answered cannot look complete
  };
  [[nodiscard]] net::Task<Ending> run();
  // After Ending::DropRest: what the client still sends of a request that was answered, within a bound.
  [[nodiscard]] const BodySource& rest_of_body() const noexcept { return *request_body_; }

  void cancel() noexcept;  // ends whatever waits: a departure, an upstream

 private:
  [[nodiscard]] net::Task<Ending> reject_early(PreCheck pre_check);
  void note_client_error(observe::ClientError error, std::string_view failure);
  [[nodiscard]] bool is_rejected_unverified(AdmissionResult& admission_result);
  void verify_token();
  void note_token_fault(policy::TokenFault fault);
  [[nodiscard]] net::Task<Ending> inspect();  // shows the body to the rules that ask for it, then decides
  [[nodiscard]] net::Task<Ending> read_body(std::uint64_t most);
  [[nodiscard]] net::Task<BodySource::Status> gather_body(std::uint64_t most);
  void release_body() noexcept;
  [[nodiscard]] net::Task<bool> await_body();
  [[nodiscard]] net::Task<bool> say_continue();
  [[nodiscard]] net::Task<bool> write_continue();
  [[nodiscard]] net::Task<Ending> give_up_body(BodySource::Status status);
  [[nodiscard]] net::Task<Ending> refuse_unread(unsigned status, std::string_view what);
  [[nodiscard]] net::Task<Ending> decide();
  // What can be said without waiting is said in plain functions: the task that they return has ended already.
  [[nodiscard]] net::Task<Ending> ask_redis();
  [[nodiscard]] net::Task<Ending> apply_decision(const AdmissionResult& admission_result);
  [[nodiscard]] net::Task<Ending> wait_in_queue();
  [[nodiscard]] net::Task<Ending> leave_queue(const Shaper::QueueResult& queue_result,
                                              const AdmissionController::Delayed& delayed);
  [[nodiscard]] net::Task<Ending> pass_on();
  [[nodiscard]] net::Task<Ending> answer_max_forwards();
  [[nodiscard]] net::Task<Ending> refuse(const AdmissionResult& admission_result);
  [[nodiscard]] net::Task<Ending> refuse_by(const policy::Rule& rule, base::Duration retry_after);
  [[nodiscard]] net::Task<Ending> refuse_waiting(const AdmissionController::Delayed& delayed,
                                                 base::Duration retry_after);
  [[nodiscard]] net::Task<Ending> shed();
  [[nodiscard]] net::Task<Ending> reject_displaced(base::Duration retry_after);
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;
  [[nodiscard]] net::Task<Ending> error(unsigned status, std::string_view what);
  // Returns the HTTP-date of `latest_`.
  [[nodiscard]] std::string_view date() {
    return worker_.http_date(report_.machine_started + (latest_ - report_.started));
  }
  [[nodiscard]] net::Task<Ending> answer(http::Answer answer);
  [[nodiscard]] net::Task<Ending> send(const http::Answer& answer);
  [[nodiscard]] net::Task<Ending> send_rest(std::size_t sent, bool keep_alive);
  [[nodiscard]] Ending give_up_writing(bool late);
  [[nodiscard]] Ending answered_with(const net::ErrorCode& ec, std::size_t sent, bool keep_alive);
  [[nodiscard]] bool drop_body();
  void name_request();
  void note_rate_limit_headers(const policy::Decision& decision);
  void settle(unsigned status, const http::ResponseHead* head);

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
  [[nodiscard]] net::Task<Ending> answer_paused(base::Duration wait);
  void note_pause(upstream::Pool& pool);
  void refund_charge();
  [[nodiscard]] net::Task<bool> connect(upstream::Pool& pool, Attempt& attempt);
  [[nodiscard]] net::Task<bool> exchange_heads(upstream::Pool& pool, Attempt& attempt);
  enum class HeadState : std::uint8_t { Missing, Interim, Whole, Faulty };
  [[nodiscard]] HeadState look_at_answer(Attempt& attempt, std::size_t& searched);
  void note_silence(Attempt& attempt, const net::ErrorCode& why);
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
  void report_end(base::TimePoint ended) noexcept;

  Session& session_;
  Worker& worker_;
  const WorkerSnapshots::SnapshotRef snapshot_;  // in the edition that it began with
  const Configuration& config_;
  std::unique_ptr<ExchangeBuffers> buffers_;
  AdmissionController admission_;
  std::string_view head_bytes_;
  policy::Priority priority_ = policy::kDefaultPriority;
  bool in_flight_ = false;            // counted by the worker's InFlight
  Shaper::Ticket* ticket_ = nullptr;  // while waiting for a departure
  upstream::Lease lease_;
  net::Timer* pause_ = nullptr;  // between two attempts
  Tunnel* tunnel_ = nullptr;     // while it lasts
  std::optional<BodySource> request_body_;
  struct Upload;
  std::unique_ptr<Upload> upload_;  // of a request that could not be sent at once
  bool no_memory_ = false;          // other bodies leave the one that a rule reads no memory
  std::string_view unheld_;         // the piece of the body that memory did not hold
  bool client_stalls_ = false;      // it does not take the answer that waits for it
  bool slow_ = false;               // it sent what a rule reads, or took its answer, slower than min_rate
  base::TimePoint latest_{};        // the clock as it was read last: after each wait
  RequestReport report_;
  bool begun_ = false;
};

}  // namespace weir::proxy
