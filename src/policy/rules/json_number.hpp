// A number under a JSON pointer, found without building the document.
//
// Our own walk over Boost.JSON's events, because its documents keep the last of two members of one name and
// say nothing of the first: an upstream that takes the first would be told another number than we were.
#pragma once

#include <string>
#include <string_view>

namespace weir::policy {

struct JsonNumber {
  enum class Found : unsigned char {
    Nothing,  // no value stands under the pointer
    Number,   // `digits` is it, without an exponent; a string may hold it as well
    Faulty,   // no JSON, a value of another kind, below zero, or a name on the way stands twice in its object
    TooDeep,  // nested deeper than kDeepestJson (cost.hpp), wherever
  };
  Found found = Found::Nothing;
  std::string digits{};
};

// `pointer`: RFC 6901, "/items/0/amount"; "" is the whole document.
[[nodiscard]] JsonNumber find_json_number(std::string_view document, std::string_view pointer);

}  // namespace weir::policy
