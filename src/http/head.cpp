#include "weir/http/head.hpp"

#include <algorithm>

namespace weir::http {

namespace {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

}  // namespace

void RequestHead::clear() noexcept {
  method = target = authority = path = query = {};
  fields.clear();
  minor_version = 1;
  framing = Framing::None;
  content_length = 0;
  keep_alive = true;
  expects_continue = false;
  wants_upgrade = false;
  max_forwards.reset();
}

void ResponseHead::clear() noexcept {
  status = 0;
  reason = {};
  fields.clear();
  minor_version = 1;
  framing = Framing::None;
  content_length = 0;
  length_known = false;
  keep_alive = true;
  wants_upgrade = false;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

const Field* find_field(const Fields& fields, std::string_view name) noexcept {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return equal_ignoring_case(field.name, name); });
  return found == fields.end() ? nullptr : &*found;
}

const Field* find_field(const Fields& fields, FieldId id) noexcept {
  const auto found =
      std::find_if(fields.begin(), fields.end(), [&](const Field& field) { return field.id == id; });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace weir::http
