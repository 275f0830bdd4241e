// The schema as JSON Schema, for editors and for the documents that are made of it: what `weir schema`
// prints.
//
// Draft 4, the one that taplo and so Even Better TOML understand. Whatever the loader takes is valid by it;
// what only the whole configuration tells (a reference to nothing, keys that exclude each other) is the
// loader's to refuse.
#pragma once

#include <string>

namespace weir::app {

// In a layout that stays the same while the schema does; ends with a line break.
[[nodiscard]] std::string schema_as_json();

// `pattern` as the schema has it: of the whole text, or the text reads the environment, whatever that will
// say.
[[nodiscard]] std::string whole_text(std::string_view pattern);

}  // namespace weir::app
