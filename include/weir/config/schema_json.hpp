// The schema as JSON Schema, for editors and generated documents. `weir schema` prints it.
//
// The text uses JSON Schema draft 4, because taplo (the engine of the editor plugin Even Better TOML)
// supports that version. Every configuration that weir accepts is valid under the schema. The schema also
// permits some configurations that weir rejects: JSON Schema cannot express, for example, that an upstream
// must exist, or that two keys exclude each other.
#pragma once

#include <string>

namespace weir::config {

// Returns the JSON text, which ends with a line break. Equal schemas give equal texts.
[[nodiscard]] std::string schema_as_json();

// Returns a regular expression that matches a string if `pattern` matches the whole string. The expression
// also matches every string with a reference to an environment variable, because an editor does not know the
// value of the variable.
[[nodiscard]] std::string whole_text(std::string_view pattern);

}  // namespace weir::config
