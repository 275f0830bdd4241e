// Finds the values under JSON pointers in one pass over a document, without building the document.
//
// Does not use boost::json::value, which keeps only the last of two members with the same name. A server that
// reads the first member would see another value than weir. So this code handles the parser's events itself.
#pragma once

#include "weir/policy/body_values.hpp"

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace weir::policy {

class JsonReader {
 public:
  // `pointers` must outlive the reader.
  explicit JsonReader(const JsonPointers& pointers);
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;
  ~JsonReader();

  // Reads the next piece of the document. The pieces may have any size.
  void read(std::string_view piece);
  // Ends the document. Stores each value at the index that JsonPointers has assigned to its pointer. Returns
  // why the document is not JSON; None if it is. If there is a fault, the values are incomplete. The next
  // piece begins another document.
  [[nodiscard]] JsonFault finish(std::vector<JsonValue>& values);
  // Returns the memory that the reader uses now, in bytes.
  [[nodiscard]] std::size_t memory() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::policy
