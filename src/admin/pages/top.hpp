// GET /api/top: for each rule, the clients with the most admitted and the most refused units.
#pragma once

#include "admin/pages/answer.hpp"

namespace weir::admin {

// Returns the page. The query may have two parameters: `rule=NAME` shows one rule only, and `n=COUNT` is the
// number of clients in each list.
[[nodiscard]] Answer show_top_clients(const Sources& sources, const PageRequest& question);

}  // namespace weir::admin
