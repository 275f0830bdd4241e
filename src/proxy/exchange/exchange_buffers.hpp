// The memory of one exchange, kept by the worker between exchanges: large, and needed only while one is under
// way.
#pragma once

#include "proxy/admission/charge_journal.hpp"

#include "weir/http/head.hpp"
#include "weir/limit/permit.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/explain_request.hpp"
#include "weir/policy/match.hpp"
#include "weir/proxy/body_memory.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/worker.hpp"
#include "weir/redis/permit.hpp"

#include <string>
#include <vector>

namespace weir::proxy {

// A line that Redis could not be asked for, as it was made.
struct UnaskedLine {
  const policy::Rule* rule;
  limit::Charge charge;
};

struct ExchangeBuffers {
  explicit ExchangeBuffers(Worker& worker)
      : answer(worker.blocks),
        inspected(worker.body_memory, worker.counters),
        copy(worker.body_memory, worker.counters) {}

  http::RequestHead head;
  policy::Credentials credentials;
  policy::Request request;
  policy::RequestTexts texts;
  policy::Evaluation evaluation;
  policy::Bill fallback;             // of Redis lines, charged here while Redis is away
  std::vector<UnaskedLine> unasked;  // of these the ones whose rules count messages as well
  http::ResponseHead response;
  Inbox answer;                    // bytes of the upstream
  std::string out;                 // what is about to be sent
  std::string text;                // a body of our own
  std::string rate_limit_headers;  // the rate-limit fields of this exchange
  std::string request_id;

  BodyBuffer inspected;  // of the request's body, what was read before the decision
  BodyBuffer copy;       // of an answer's body, where a rule reads it

  ChargeJournal journal;
  std::vector<limit::Permit> permits;  // what the exchange holds; given back with the space at the latest
  std::vector<redis::Permit> shared_permits;  // the same in Redis

  void clear() {
    permits.clear();
    shared_permits.clear();
    answer.release();
    inspected.clear();
    copy.clear();
    rate_limit_headers.clear();
    request_id.clear();
    evaluation.local.clear();
    evaluation.remote.clear();
    fallback.clear();
    unasked.clear();
    journal.clear();
  }
};

}  // namespace weir::proxy
