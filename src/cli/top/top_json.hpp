// The output of `weir top --json`: one line of JSON, for programs. The members have the names that the admin
// listener's pages use.
#pragma once

#include "cli/top/top_sample.hpp"

#include <string>
#include <string_view>

namespace weir::cli {

// Returns one line of JSON with its newline. Rates are per second, computed between the two samples.
// `address`: the admin listener's address.
[[nodiscard]] std::string top_json(const Sample& before, const Sample& now, std::string_view address);

}  // namespace weir::cli
