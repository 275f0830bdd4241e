// The schema as JSON Schema, for editors and generated documents. `weir schema` prints it.
//
// The text uses draft 4, because taplo (the engine of Even Better TOML) supports that. Every configuration
// that the loader accepts is valid under the schema. The schema does not express faults of the configuration
// as a whole, such as a reference to a missing upstream or keys that exclude each other. Only the loader
// finds those.
#pragma once

#include <string>

namespace weir::config {

// Returns the JSON text. Equal schemas give equal texts. The text ends with a line break.
[[nodiscard]] std::string schema_as_json();

// Returns a regular expression that matches a whole text of `pattern`, or any text with an environment
// variable, whose value is unknown here.
[[nodiscard]] std::string whole_text(std::string_view pattern);

}  // namespace weir::config
