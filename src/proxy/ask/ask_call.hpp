// One call on a listener that answers questions: its request, its body and its answer. The functions of each
// API (decide_api.hpp, forward_auth.hpp, …) serve a call. AskService owns the call; only the worker's thread
// uses it.
#pragma once

#include "proxy/ask/permits.hpp"
#include "proxy/ask/question_exchange.hpp"
#include "proxy/client/client_stream.hpp"
#include "proxy/exchange/ending.hpp"
#include "proxy/exchange/exchange_buffers.hpp"

#include "weir/ask/answer.hpp"
#include "weir/ask/question.hpp"
#include "weir/ask/settle_request.hpp"
#include "weir/http/answer.hpp"
#include "weir/net/signal.hpp"
#include "weir/net/task.hpp"
#include "weir/observe/ask_tallies.hpp"
#include "weir/proxy/ask_settings.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weir::proxy {

class AskCall {
 public:
  static constexpr std::size_t kMostBody = 1 << 20;  // octets of a call's body

  // `a_client`: the connection of the call. Must outlive this object.
  AskCall(ClientStream& a_client, std::shared_ptr<const AskSettings> a_settings);
  ~AskCall();
  AskCall(const AskCall&) = delete;
  AskCall& operator=(const AskCall&) = delete;

  ClientStream& client;
  Worker& worker;

 private:
  // shared, because a reload may replace the settings of the listener
  const std::shared_ptr<const AskSettings> settings_;
  std::unique_ptr<ExchangeBuffers> buffers_loan_;

 public:
  const AskSettings& settings;
  ExchangeBuffers& buffers;             // the head and the body of the call, and the text to send
  bool authorization_is_token = false;  // true: the call's Authorization contains the listener's token

  // Reads the whole body. Returns the error to answer; its status is 0 if there is no error.
  [[nodiscard]] net::Task<LocalError> read_body();
  // Returns the body. REQUIRES that read_body() succeeded.
  [[nodiscard]] std::string_view body() const noexcept { return buffers.inspected.view(); }

  // Decides about a question, and counts it. If the asker has disconnected, the answer's status is 0. Askers
  // of the decide API get a permit if the question wants one, or if an applied rule needs a settlement.
  // With Question::answer_waits, returns when the request may go on. If a new process takes over in an
  // upgrade, decides nothing, and returns an error with the status 503.
  [[nodiscard]] net::Task<ask::Answer> decide(ask::Question question, observe::AskApi api);
  // Must be called when the answer with the permits was sent. Otherwise the call refunds the charges of these
  // permits at its end, because the asker does not know the permits.
  void keep_permits() noexcept { unsent_permits_.clear(); }
  // Settles a permit of any worker.
  [[nodiscard]] net::Task<Permits::Result> settle(ask::SettleRequest request);

  // Sends the answer to the call. If the call uses gRPC, turns the answer into a trailers-only answer.
  [[nodiscard]] net::Task<Ending> answer(http::Answer answer);
  // Sends the answer unchanged, whatever the protocol of the call.
  [[nodiscard]] net::Task<Ending> send(http::Answer answer);
  // Sends an error, with a JSON body or as the status of a gRPC call. `what`: a sentence, which may contain
  // any characters. `fields`: complete header lines.
  [[nodiscard]] net::Task<Ending> error(unsigned status, std::string_view what, std::string_view fields = {});

  void cancel() noexcept;  // ends each wait for a decision

 private:
  [[nodiscard]] bool is_grpc() const noexcept;
  [[nodiscard]] LocalError fault_of(BodySource::Status status) const noexcept;
  [[nodiscard]] net::Task<void> await_departure(QuestionExchange& question, ask::Answer& answer);
  void issue_permit(std::unique_ptr<QuestionExchange> question, ask::Answer& answer);

  QuestionExchange* question_ = nullptr;     // set while weir decides about a question
  net::Notification* settlement_ = nullptr;  // set while another worker settles a permit for this call
  net::Timer* departure_ = nullptr;          // set while the call waits for a departure
  std::vector<std::string> unsent_permits_;  // the permits of answers that were not sent so far
  std::string text_;                         // the body of an error answer
  std::string fields_;  // the header lines of an error answer or of a trailers-only answer
};

}  // namespace weir::proxy
