// Adds up the numbers in JSON that form a cost (CostTerm).
#pragma once

#include "policy/body/json_numbers.hpp"

#include "weir/policy/settlement.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// Reads the amount from digits without an exponent. The amount may be 0, unlike the cost of a request. An
// amount above kMaxCost is read as kMaxCost. If weir rejected such an amount, only the reserved amount would
// be charged, so the most expensive responses would be the cheapest.
[[nodiscard]] ReportedCost read_amount(std::string_view digits, std::uint32_t scale);

// Returns the pointers of all terms, in order.
[[nodiscard]] std::vector<std::string> pointers_of(std::span<const CostTerm> terms);
// Returns true if the document has a value other than null under the pointer.
[[nodiscard]] bool is_present(const JsonNumber& number) noexcept;
// Returns the weighted sum of the terms, rounded up. `numbers`: one number for each result of pointers_of().
// A term whose numbers are all absent or null adds nothing. If no term adds anything, the state is Nothing.
[[nodiscard]] ReportedCost sum_of_terms(std::span<const CostTerm> terms, std::uint32_t scale,
                                        std::span<const JsonNumber> numbers);
// Returns the terms in words: "/a|/b + 4 x /c".
[[nodiscard]] std::string describe_terms(std::span<const CostTerm> terms);

}  // namespace weir::policy
