// GET /api/top: for each rule, the clients with the most admitted and the most refused units.
#pragma once

#include "admin/pages/answer.hpp"

namespace weir::admin {

// Returns the page. Parameters of the query: `rule=NAME` for one rule only, `n=COUNT` for the number of
// clients in each list.
[[nodiscard]] Answer say_top(const Sources& sources, const PageRequest& question);

}  // namespace weir::admin
