// Finds the fields of a form (application/x-www-form-urlencoded) by name.
//
// Servers disagree about the names of fields. For the field "email" some of them take "Email", " email",
// "email[]", "[email]", "email]", "?email" or "email%00x", and some divide a form at ';' as well as at '&'. A
// name that is equal except for the case of letters is the field. Any other name that some server takes for
// the field makes the field Respelled, so that no client can give a server another value than weir reads. So
// does an escape "%u0041" in any name, or in the field's value.
#pragma once

#include "weir/policy/body_values.hpp"

#include <string_view>
#include <vector>

namespace weir::policy {

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Finds the fields with these names. Stores their values in the order of their numbers.
void find_fields(const FormNames& names, std::string_view form, std::vector<FormValue>& values);

// Returns true if the form, or a query, has the field under a name that some server takes for it.
[[nodiscard]] bool has_field(std::string_view form, std::string_view name);

}  // namespace weir::policy
