// The state that the parts of one exchange share. The exchange owns the context, which outlives the parts.
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
  std::unique_ptr<ExchangeBuffers> buffers_loan_;

 public:
  explicit ExchangeContext(ClientStream& a_client);
  ~ExchangeContext() { worker.give_back(std::move(buffers_loan_)); }
  ExchangeContext(const ExchangeContext&) = delete;
  ExchangeContext& operator=(const ExchangeContext&) = delete;

  ClientStream& client;
  ClientWatch& watch;
  const ask::Question* const question;  // null: the request is to be forwarded
  Worker& worker;
  // the worker snapshot that was current when the request started
  const WorkerSnapshots::SnapshotRef snapshot;
  const Configuration& config;  // the configuration of that snapshot
  ExchangeBuffers& buffers;
  AdmissionController admission;
  RequestReport report;
  base::TimePoint now{};  // the time of the last reading of the clock; weir reads the clock after each wait
  // True if the current server did not accept the whole request at once, so that an Upload sends the rest.
  // Remains true after the upload has ended.
  bool upload_begun = false;

  // Returns the matched route, or null if no route matched.
  [[nodiscard]] const policy::Route* route() const noexcept {
    return report.route ? &config.routes[*report.route] : nullptr;
  }
  // Returns true if the request has a body of known length, and the whole body is in memory.
  [[nodiscard]] bool has_whole_body() const noexcept {
    const auto& head = buffers.head;
    return head.framing == http::Framing::Length && client.body().at_hand().size() >= head.content_length;
  }
  void read_clock() noexcept { now = worker.clock.now(); }
  // Identifies the client, and fills in the request as routes and rules see it.
  void identify();
  // Returns the HTTP-date of `now`.
  [[nodiscard]] std::string_view date() {
    return worker.http_date(report.machine_started + (now - report.started));
  }
  // Sets the request's id: the id that a trusted proxy sent, or a new one. The answer, the forwarded request
  // and the log show the same id.
  void name_request();

  // Adds the request to a trace: to that of a trusted peer, otherwise to a new one. REQUIRES [tracing].
  void join_trace();
  // Replaces the client's traceparent by weir's own, for the server. Removes the tracestate of a trace that
  // the request does not continue. REQUIRES that join_trace() was called.
  void pass_trace_on();

  // Returns the values for placeholders in the route's texts. REQUIRES that the request has its id.
  [[nodiscard]] policy::TemplateValues template_values() const noexcept {
    return {buffers.request, buffers.request_id};
  }
  // Applies the route's changes to a server's answer: marks fields that weir must not forward, and appends
  // the fields that the route adds to `buffers.rate_limit_headers`.
  void edit_answer(http::Fields& fields);
  // Applies the route's changes to an answer that weir creates itself. `lines`: the fields of the answer.
  void edit_own_answer(std::string& lines);

  // Verifies the client's token. Counts the fault if the token has one.
  void verify_token();
  // Returns the counters of the route. REQUIRES a matched route.
  [[nodiscard]] observe::RouteTallies& route_tallies() const noexcept {
    return worker.counters.route(config.index_of_route(*report.route));
  }
  // Returns the counters of the route's upstream. REQUIRES a route that has an upstream.
  [[nodiscard]] observe::UpstreamTallies& tallies() const noexcept {
    return worker.counters.upstream(config.index_of_upstream(route()->upstream));
  }

  // Writes the rate-limit fields of the answer, as `decision` requires.
  void note_rate_limit_headers(const policy::Decision& decision);
  // Appends a Retry-After that does not come from a rule. Lengthens the time at random, as retry_after_jitter
  // says.
  void append_retry_after(base::Duration wait);
  // Adjusts the charges to the cost in the answer, and updates the rate-limit fields. `head`: null if weir
  // creates the answer itself.
  void settle(unsigned status, const http::ResponseHead* head);
  // Refunds the charges. Must be called only if no server got any part of the request.
  void refund();

  // Sends 100 Continue to the client. Returns false if the client did not accept it in time.
  [[nodiscard]] net::Task<bool> send_continue();

  // Counts an error of the client and records `failure`. Does not count a question that ended because its
  // timeout has passed (Question::timeout), because its asker is still connected.
  void note_client_error(observe::ClientError error, std::string_view failure) {
    const bool overdue =
        error == observe::ClientError::Left && report.is_question && !watch.has_disconnected();
    if (!overdue) worker.counters.client_errors(error).add();
    report.failure = failure;
  }
  // Records that a message to the client was sent only in part, and returns Ending::Abort. Afterwards weir
  // must not send another message: the client would read it as the rest of the first. `late`: true if the
  // client is too slow, false if the client has disconnected.
  Ending give_up_writing(bool late);

 private:
  void describe_connection();
};

}  // namespace weir::proxy
