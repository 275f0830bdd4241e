// Reads the JSON of POST /api/explain, which describes a request. Pure.
#pragma once

#include "weir/policy/explain_request.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::admin {

// A sentence that says what is wrong with the JSON; nullopt if nothing is wrong.
using ExplainRequestFault = std::optional<std::string>;

// Fills `explain_request` from a JSON object. If members are missing, they get the values of a GET request
// for "/" from 127.0.0.1. After a fault, the content of `explain_request` is undefined.
[[nodiscard]] ExplainRequestFault read_explain_request(std::string_view text,
                                                       policy::ExplainRequest& explain_request);

}  // namespace weir::admin
