// Makes the answer to a question out of the state of its exchange. Pure.
#pragma once

#include "proxy/ask/question_stream.hpp"
#include "proxy/exchange/exchange_context.hpp"

#include "weir/ask/answer.hpp"
#include "weir/http/head_parser.hpp"

#include <string_view>

namespace weir::proxy {

// Returns the answer to a question on which the exchange has decided. `refusal`: what the exchange wrote;
// without a meaning if the question is admitted.
[[nodiscard]] ask::Answer answer_of(ExchangeContext& context, QuestionStream::Refusal&& refusal);

// Returns the answer to a question whose request weir would reject because of its head.
[[nodiscard]] ask::Answer refusal_of(const http::Fault& fault);

// Returns the answer to a question on which weir could not decide.
[[nodiscard]] ask::Answer error_answer(unsigned status, std::string_view what);

}  // namespace weir::proxy
