// What the parts of one exchange share. The exchange owns it, and it outlives the parts.
#pragma once

#include "proxy/admission/admission_controller.hpp"
#include "proxy/client/client_stream.hpp"
#include "proxy/exchange/ending.hpp"
#include "proxy/exchange/exchange_buffers.hpp"
#include "proxy/exchange/request_report.hpp"

#include "weir/http/head.hpp"
#include "weir/proxy/relay.hpp"

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace weir::proxy {

class ExchangeContext {
  std::unique_ptr<ExchangeBuffers> loan_;

 public:
  explicit ExchangeContext(ClientStream& a_client);
  ~ExchangeContext() { worker.give_back(std::move(loan_)); }
  ExchangeContext(const ExchangeContext&) = delete;
  ExchangeContext& operator=(const ExchangeContext&) = delete;

  ClientStream& client;
  ClientWatch& watch;
  Worker& worker;
  const WorkerSnapshots::SnapshotRef stay;  // in the configuration that the request began with
  const Configuration& config;              // that one
  ExchangeBuffers& buffers;
  AdmissionController admission;
  RequestReport report;
  base::TimePoint now{};      // the clock as it was read last: after each wait
  bool upload_begun = false;  // the server that was asked last gets the body as it comes

  // Null if no route matched.
  [[nodiscard]] const policy::Route* route() const noexcept {
    return report.route ? &config.routes[*report.route] : nullptr;
  }
  void read_clock() noexcept { now = worker.clock.now(); }
  // Returns the HTTP-date of `now`.
  [[nodiscard]] std::string_view date() {
    return worker.http_date(report.machine_started + (now - report.started));
  }
  // Gives the request its id: the one that a trusted proxy sent, else a new one. Answers, the server's
  // request and the log carry the same.
  void name_request();

  // Verifies the client's token, and counts its fault.
  void verify_token();
  // The counters of the route's upstream. REQUIRES a route that has one.
  [[nodiscard]] observe::UpstreamTallies& tallies() const noexcept {
    return worker.counters.upstream(config.label_of_upstream(route()->upstream));
  }

  // Writes the rate-limit fields that tell of the decision.
  void note_rate_limit_headers(const policy::Decision& decision);
  // Settles by an answer of this status what was charged for it, and writes the rate-limit fields as they are
  // then. `head`: null where weir answers itself.
  void settle(unsigned status, const http::ResponseHead* head);
  // Refunds the charges: no server has the request.
  void refund();

  // Asks the client for its body. Returns false if it does not take that text.
  [[nodiscard]] net::Task<bool> send_continue();

  void note_client_error(observe::ClientError error, std::string_view failure) {
    worker.counters.client_errors(error).add();
    report.failure = failure;
  }
  // The client did not take all of a text: it would read any other text as the rest of that one. `late`: it
  // had its time, and did not leave.
  Ending give_up_writing(bool late);
};

}  // namespace weir::proxy
