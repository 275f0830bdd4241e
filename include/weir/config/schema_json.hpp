// The schema as JSON Schema, for editors and generated documents. `weir schema` prints it.
//
// The text uses JSON Schema draft 4, because taplo (the engine of the editor plugin Even Better TOML)
// supports that version. Every configuration that weir accepts is valid under the schema. Some invalid
// configurations are valid, too, because JSON Schema cannot express that an upstream must exist, or that two
// keys exclude each other. Only weir itself finds such mistakes.
#pragma once

#include <string>

namespace weir::config {

// Returns the JSON text, which ends with a line break. Equal schemas give equal texts.
[[nodiscard]] std::string schema_as_json();

// Returns a regular expression for a string in the configuration file. The expression matches if `pattern`
// matches the whole string. The expression also matches every string with a reference to an environment
// variable, because an editor does not know the value.
[[nodiscard]] std::string whole_text(std::string_view pattern);

}  // namespace weir::config
