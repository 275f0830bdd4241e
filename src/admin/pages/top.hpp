// GET /api/top: who spends most of each rule, and who is refused most.
#pragma once

#include "admin/pages/answer.hpp"

namespace weir::admin {

// `?rule=NAME` for one rule, `n=COUNT` for so many clients of each.
[[nodiscard]] Answer say_top(const Sources& sources, const Question& question);

}  // namespace weir::admin
