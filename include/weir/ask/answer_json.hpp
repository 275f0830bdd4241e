// Writes answers as JSON, for POST /v1/decide. docs/ask.md lists the members. Pure.
#pragma once

#include "weir/ask/answer.hpp"

#include <span>
#include <string>

namespace weir::ask {

// Appends {"allowed":true,"status":200,"rule":…,…}. Omits members that have no value.
void append_answer_json(std::string& out, const Answer& answer);
// Appends an array with all answers.
void append_answers_json(std::string& out, std::span<const Answer> answers);

}  // namespace weir::ask
