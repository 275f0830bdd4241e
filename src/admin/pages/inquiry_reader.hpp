// Reads the JSON of POST /api/explain, which describes a request. Pure.
#pragma once

#include "weir/policy/inquiry.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::admin {

// A sentence about what is wrong with the text; nullopt if nothing is.
using InquiryFault = std::optional<std::string>;

// Fills `inquiry` from a JSON object. Missing members have the values of a GET of "/" from 127.0.0.1. After a
// fault `inquiry` is undefined.
[[nodiscard]] InquiryFault read_inquiry(std::string_view text, policy::Inquiry& inquiry);

}  // namespace weir::admin
