// The memory of one exchange, kept by the worker between exchanges: large, and needed only while one is under
// way.
#pragma once

#include "weir/http/head.hpp"
#include "weir/policy/evaluation.hpp"
#include "weir/policy/match.hpp"
#include "weir/proxy/buffer.hpp"

#include <string>

namespace weir::proxy {

struct ExchangeSpace {
  explicit ExchangeSpace(BlockPool& blocks) : answer(blocks) {}

  http::RequestHead head;
  policy::Request request;
  std::string path_scratch;
  std::string host_scratch;
  policy::Evaluation evaluation;
  policy::Bill fallback;  // of Redis lines, charged here while Redis is away
  http::ResponseHead response;
  Inbox answer;          // bytes of the upstream
  std::string out;       // what is about to be sent
  std::string text;      // a body of our own
  std::string standing;  // the rate-limit fields of this exchange
  std::string request_id;

  void clear() {
    answer.release();
    standing.clear();
    evaluation.local.clear();
    evaluation.remote.clear();
    fallback.clear();
  }
};

}  // namespace weir::proxy
