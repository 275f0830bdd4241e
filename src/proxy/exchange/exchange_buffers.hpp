// The buffers of one exchange. They are large and needed only during an exchange, so the worker reuses them
// for other exchanges.
#pragma once

#include "proxy/admission/charge_journal.hpp"

#include "weir/http/head.hpp"
#include "weir/limit/permit.hpp"
#include "weir/observe/trace.hpp"
#include "weir/policy/body_values.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/explain_request.hpp"
#include "weir/policy/match.hpp"
#include "weir/policy/route.hpp"
#include "weir/policy/rule_finder.hpp"
#include "weir/proxy/body_memory.hpp"
#include "weir/proxy/buffer.hpp"
#include "weir/proxy/worker.hpp"
#include "weir/redis/permit.hpp"

#include <optional>
#include <string>
#include <vector>

namespace weir::proxy {

// A charge that was not made because Redis was unreachable, and its rule.
struct UnansweredCharge {
  const policy::Rule* rule;
  limit::Charge charge;
};

struct ExchangeBuffers {
  explicit ExchangeBuffers(Worker& worker)
      : answer(worker.blocks, &worker.large_blocks),
        inspected(worker.body_memory, worker.counters),
        copy(worker.body_memory, worker.counters) {}

  http::RequestHead head;
  policy::Credentials credentials;
  policy::Request request;
  policy::RequestTexts texts;
  policy::RuleList rules;                     // the rules that the request may match
  policy::RuleFinder::Scratch found_rules;    // memory for RuleFinder::find(); `rules` may refer to it
  policy::RouteFinder::Scratch found_routes;  // memory for RouteFinder::choose()
  policy::Evaluation evaluation;
  policy::Bill fallback;  // charges for rules in Redis, made in this process while Redis is unreachable
  // The charges that were not made because Redis was unreachable. Only those of rules with `messages`, for
  // MessageLimits.
  std::vector<UnansweredCharge> unanswered;
  http::ResponseHead response;
  Inbox answer;                    // received bytes of the server's answer
  std::string out;                 // the text to send next, to the client or to a server
  std::string text;                // the body of an answer that weir creates
  std::string rate_limit_headers;  // the rate-limit fields of the answer
  std::string request_id;
  std::optional<observe::TraceContext> trace;  // absent: [tracing] is off
  std::string forwarded_path;    // the path that the route forwards; empty: the path as it was received
  std::string forwarded_fields;  // the lines of fields that the route adds to the request

  BodyBuffer inspected;            // the part of the request's body that was read for the rules
  policy::BodyValues body_values;  // the values in `inspected` that the rules' keys and conditions read
  BodyBuffer copy;                 // the copy of an answer's body, if a rule reads it

  ChargeJournal journal;
  // permits that the exchange holds; clear() releases them
  std::vector<limit::Permit> permits;
  std::vector<redis::Permit> shared_permits;  // permits that the exchange holds in Redis

  void clear() {
    permits.clear();
    shared_permits.clear();
    answer.release();
    inspected.clear();
    body_values.clear();
    copy.clear();
    rules = {};
    rate_limit_headers.clear();
    request_id.clear();
    trace.reset();
    forwarded_path.clear();
    forwarded_fields.clear();
    evaluation.clear();
    fallback.clear();
    unanswered.clear();
    journal.clear();
  }
};

}  // namespace weir::proxy
