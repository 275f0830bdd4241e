// Finds the number under a JSON pointer without building the document.
//
// Does not use boost::json::value, which keeps only the last of two members with the same name. An upstream
// that reads the first member would see another number than weir. So this code handles the parser's events.
#pragma once

#include "weir/policy/cost.hpp"

#include <string>
#include <string_view>

namespace weir::policy {

struct JsonNumber {
  enum class Found : unsigned char {
    Nothing,  // no value under the pointer
    Number,   // `digits` is the number without an exponent; the document may have it as a string
    Faulty,   // another kind of value, a negative number, or a document with a `fault`
  };
  Found found = Found::Nothing;
  JsonFault fault = JsonFault::None;
  std::string digits{};
};

// Finds the number. `pointer` follows RFC 6901: "/items/0/amount"; "" is the whole document.
[[nodiscard]] JsonNumber find_json_number(std::string_view document, std::string_view pointer);

}  // namespace weir::policy
