// Finds the number under a JSON pointer without building the document.
//
// Does not use boost::json::value, which keeps only the last of two members with the same name. An upstream
// that reads the first member would then see another number than weir. So this code handles the parser's
// events.
#pragma once

#include <string>
#include <string_view>

namespace weir::policy {

struct JsonNumber {
  enum class Found : unsigned char {
    Nothing,  // no value under the pointer
    Number,   // `digits` is the number without an exponent; the document may have it in a string
    Faulty,   // invalid JSON, not a number, below zero, or a duplicate member on the path
    TooDeep,  // nested deeper than kDeepestJson (cost.hpp), anywhere in the document
  };
  Found found = Found::Nothing;
  std::string digits{};
};

// Finds the number. `pointer` follows RFC 6901: "/items/0/amount"; "" is the whole document.
[[nodiscard]] JsonNumber find_json_number(std::string_view document, std::string_view pointer);

}  // namespace weir::policy
