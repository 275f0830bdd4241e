// One question. Decides about the question, and keeps the charges as long as the permit is open. AskCall owns
// the object while weir decides; Permits owns it afterwards. Only the worker's thread uses it.
#pragma once

#include "proxy/ask/question_stream.hpp"
#include "proxy/client/client_watch.hpp"
#include "proxy/exchange/exchange.hpp"

#include "weir/ask/answer.hpp"
#include "weir/ask/question.hpp"
#include "weir/ask/settle_request.hpp"
#include "weir/base/time.hpp"
#include "weir/net/task.hpp"

#include <cstdint>
#include <string_view>

namespace weir::proxy {

class QuestionExchange final : private ClientWatch {
 public:
  // `asker`: the connection over which the question came. Must outlive the decision.
  QuestionExchange(ClientStream& asker, ask::Question question);

  // Decides, and charges the limits. Must be called once. If the asker has disconnected, nothing is charged
  // and the answer's status is 0.
  [[nodiscard]] net::Task<ask::Answer> decide();
  // Ends each wait of the decision.
  void cancel() noexcept { exchange_.cancel(); }

  [[nodiscard]] const ask::Question& question() const noexcept { return *stream_.question(); }
  // Returns true if the question holds something that ends only with a settlement: a permit of a concurrency
  // limit, or a charge that the answer to the request corrects.
  [[nodiscard]] bool needs_settlement();
  // Refunds the charges, because weir answers the question with an error. `failure`: the value of `failure`
  // in the access log; static text.
  void withdraw(unsigned status, std::string_view failure);
  // Settles or refunds the charges as the asker says. Returns false and changes nothing if the headers of the
  // server's answer are invalid.
  [[nodiscard]] bool settle(const ask::SettleRequest& request);

 private:
  [[nodiscard]] bool has_disconnected() const noexcept override { return stream_.has_asker_disconnected(); }
  void on_late() noexcept override;
  void on_tick() noexcept override;
  [[nodiscard]] bool is_overdue(base::Duration wait = {}) const noexcept;
  [[nodiscard]] ask::Answer conclude();
  void settle_by_answer(const ask::SettleRequest& request);

  Worker& worker_;
  base::TimePoint asked_at_{};
  std::string answer_head_;  // the head of the server's answer, as the asker reports it
  QuestionStream stream_;
  Exchange exchange_;  // destroyed first, because it uses the other members
};

}  // namespace weir::proxy
