// Reads protobuf messages for tests, field by field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <protozero/pbf_reader.hpp>

namespace weir::ask {

// Returns the contents of all texts and messages in the field `tag`, in order.
inline std::vector<std::string> texts_in(const std::string& message, std::uint32_t tag) {
  std::vector<std::string> found;
  protozero::pbf_reader reader(message);
  while (reader.next()) {
    if (reader.tag() == tag && reader.wire_type() == protozero::pbf_wire_type::length_delimited)
      found.push_back(reader.get_string());
    else
      reader.skip();
  }
  return found;
}

// Returns the last integer in the field `tag`; 0 if `message` does not have the field. REQUIRES: the field
// has integers.
inline std::uint64_t number_in(const std::string& message, std::uint32_t tag) {
  std::uint64_t number = 0;
  protozero::pbf_reader reader(message);
  while (reader.next()) {
    if (reader.tag() == tag)
      number = reader.get_uint64();
    else
      reader.skip();
  }
  return number;
}

}  // namespace weir::ask
