// Reads protobuf messages for tests, field by field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <protozero/pbf_reader.hpp>

namespace weir::ask {

// Returns the fields with this number that are texts or messages, in order.
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

// Returns the last field with this number, which must be a number; 0 if there is none.
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
