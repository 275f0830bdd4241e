// Finds the numbers under JSON pointers. Names are compared exactly.
#pragma once

#include "weir/policy/cost.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

struct JsonNumber {
  enum class Found : unsigned char {
    Nothing,  // no value under the pointer
    Null,     // the value is null
    Number,   // `digits` is the number without an exponent; in the document, the number may be a string
    Faulty,   // another kind of value, a negative number, or a document with a `fault`
  };
  Found found = Found::Nothing;
  JsonFault fault = JsonFault::None;
  std::string digits{};
};

// Finds the number under `pointer` (RFC 6901), such as "/items/0/amount"; "" is the whole document. A number
// of more than 4 KiB is Faulty.
[[nodiscard]] JsonNumber find_json_number(std::string_view document, std::string_view pointer);

// Returns the memory that these numbers use, in bytes.
[[nodiscard]] std::size_t memory_of(std::span<const JsonNumber> numbers) noexcept;

// The numbers under several pointers, in the order of the pointers.
struct JsonNumbers {
  JsonFault fault = JsonFault::None;  // if there is a fault, the document has no numbers
  std::vector<JsonNumber> numbers{};
};
inline constexpr std::size_t kMostPointers = 32;
// Finds the numbers under all the pointers. REQUIRES: at most kMostPointers pointers.
[[nodiscard]] JsonNumbers find_json_numbers(std::string_view document, std::span<const std::string> pointers);

// Finds the numbers of documents that arrive in pieces of any size. Its memory is bounded, however long a
// document is: about 32 KiB, and at most 4 KiB for the number under each pointer.
class JsonNumberReader {
 public:
  // REQUIRES: at most kMostPointers pointers.
  explicit JsonNumberReader(std::span<const std::string> pointers);
  JsonNumberReader(JsonNumberReader&&) noexcept;
  JsonNumberReader& operator=(JsonNumberReader&&) noexcept;
  ~JsonNumberReader();

  // Reads the next piece of the document.
  void read(std::string_view piece);
  // Ends the document, and returns its numbers. The next piece begins another document.
  [[nodiscard]] JsonNumbers finish();
  // Returns the memory that the reader uses now, in bytes.
  [[nodiscard]] std::size_t memory() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::policy
