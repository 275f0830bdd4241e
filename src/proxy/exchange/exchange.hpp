// One request and its answer: identify, decide, then refuse, delay or forward; and a report of it on every
// ending.
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

class QueueWait;
class UpstreamExchange;

class Exchange {
 public:
  explicit Exchange(ClientStream& client) : context_(client) {}
  ~Exchange();  // refunds what nobody kept, and accounts for the request
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // Memory for the head that the client's stream reads, and for what it sends.
  [[nodiscard]] ExchangeBuffers& buffers() noexcept { return context_.buffers; }
  // REQUIRES a head in buffers().
  [[nodiscard]] net::Task<Ending> run();

  void cancel() noexcept;  // ends whatever waits: a departure, an upstream

 private:
  void identify();
  [[nodiscard]] bool is_rejected_unverified(AdmissionResult& admission_result);
  [[nodiscard]] net::Task<Ending> inspect();
  [[nodiscard]] net::Task<Ending> read_body();
  // What can be said without waiting is said in plain functions: the task that they return has ended already.
  [[nodiscard]] net::Task<Ending> decide();
  [[nodiscard]] net::Task<Ending> ask_redis();
  [[nodiscard]] net::Task<Ending> apply_decision(const AdmissionResult& admission_result);
  [[nodiscard]] net::Task<Ending> wait_in_queue();
  [[nodiscard]] net::Task<Ending> pass_on();
  [[nodiscard]] net::Task<Ending> forward(upstream::Pool& pool);
  [[nodiscard]] bool enter() noexcept;
  void leave() noexcept;

  ExchangeContext context_;
  LocalReply reply_{context_};
  policy::Priority priority_ = policy::kDefaultPriority;
  bool begun_ = false;
  bool in_flight_ = false;                // counted by the worker's InFlight
  QueueWait* queue_wait_ = nullptr;       // while it lasts
  UpstreamExchange* upstream_ = nullptr;  // likewise
};

}  // namespace weir::proxy
