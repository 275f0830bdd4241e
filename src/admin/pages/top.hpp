// GET /api/top: for each rule, the clients with most admitted and most refused units.
#pragma once

#include "admin/pages/answer.hpp"

namespace weir::admin {

// Parameters: `rule=NAME` for one rule, `n=COUNT` for the number of clients in each list.
[[nodiscard]] Answer say_top(const Sources& sources, const PageRequest& question);

}  // namespace weir::admin
