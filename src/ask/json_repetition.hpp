// Finds a member that an object has more than once. Parsers disagree on which of the two values counts. So a
// proxy before weir may have read another value than weir. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>

namespace weir::ask {

// Returns false if no object in `text` repeats a member. Costs much less than repeated_member(). `parsed`:
// the value of `text`, in which each object has each name once.
[[nodiscard]] bool may_repeat_members(std::string_view text, const boost::json::value& parsed) noexcept;

// Returns the name of the first member that repeats another one of its object (RFC 7493 §2.3). REQUIRES: the
// text is valid JSON whose nesting is bounded.
[[nodiscard]] std::optional<std::string> repeated_member(std::string_view text);

}  // namespace weir::ask
