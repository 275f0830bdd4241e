// Reads the members of a JSON object. Each function returns a sentence about a wrong value, and nullopt if
// the value is good. Pure.
#pragma once

#include "weir/limit/rate.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/fwd.hpp>

namespace weir::ask {

using MemberFault = std::optional<std::string>;
using HeaderList = std::vector<std::pair<std::string, std::string>>;

// `name`: the name of the member, which the sentence about a wrong value contains.
[[nodiscard]] MemberFault take_text(const boost::json::value& value, std::string_view name,
                                    std::string& text);
[[nodiscard]] MemberFault take_truth(const boost::json::value& value, std::string_view name, bool& truth);
// Reads a cost from `least` to limit::kMaxCost.
[[nodiscard]] MemberFault take_cost(const boost::json::value& value, limit::Cost least,
                                    std::optional<limit::Cost>& cost);
// Reads header fields such as {"X-Tenant": "acme", "Cookie": ["a=1", "b=2"]}. A list means several lines of
// one field.
[[nodiscard]] MemberFault take_headers(const boost::json::value& value, HeaderList& headers);

// Returns the beginning of `name` in quotes. The asker chooses the name, which may be long.
[[nodiscard]] std::string quoted(std::string_view name);

// Returns the sentence about a member that does not exist. Suggests the member that the name probably means.
[[nodiscard]] std::string unknown_member(std::string_view name, std::span<const std::string_view> members);

}  // namespace weir::ask
