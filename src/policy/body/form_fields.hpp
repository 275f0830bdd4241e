// Finds the fields of a form (application/x-www-form-urlencoded) by name.
//
// Servers disagree about the names of fields. Some servers take each of these names for the field "email":
// "Email", " email", "email[]", "[email]", "email]", "?email" and "email%00x". Some servers split a form at
// ';' as well as at '&'. weir accepts only the field's name itself, in upper or lower case. A field gets the
// fault Respelled if some server takes another name in the form for the field, or if the field's value has an
// escape such as "%u0041". If a name has such an escape, all fields get this fault. So no client can make a
// server read another value than weir reads.
#pragma once

#include "weir/policy/body_values.hpp"

#include <string_view>
#include <vector>

namespace weir::policy {

inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Finds the fields with these names. Stores the value of each field at the index that `names` has assigned to
// it.
void find_fields(const FormNames& names, std::string_view form, std::vector<FormValue>& values);

// Returns true if the form or the query has a field whose name some server takes for `name`.
[[nodiscard]] bool has_field(std::string_view form, std::string_view name);

}  // namespace weir::policy
