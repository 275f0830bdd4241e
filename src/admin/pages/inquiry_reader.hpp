// The JSON of POST /api/explain: a request that somebody describes. Pure.
#pragma once

#include "weir/policy/inquiry.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::admin {

// What is wrong with such a text, as a sentence.
using InquiryFault = std::optional<std::string>;

// Fills `inquiry` with what a JSON object says, and what it leaves out with a GET of "/" from 127.0.0.1.
// Where there is a fault `inquiry` means nothing.
[[nodiscard]] InquiryFault read_inquiry(std::string_view text, policy::Inquiry& inquiry);

}  // namespace weir::admin
