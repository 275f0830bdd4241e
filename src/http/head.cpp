#include "weir/http/head.hpp"

#include <algorithm>

namespace weir::http {

namespace {

constexpr char lower_octet(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

}  // namespace

void RequestHead::clear() noexcept {
  method = target = authority = path = query = host = {};
  plain_path = false;
  fields.clear();
  minor_version = 1;
  framing = Framing::None;
  content_length = 0;
  http2 = false;
  opens_websocket = false;
  keep_alive = true;
  expects_continue = false;
  wants_upgrade = false;
  max_forwards.reset();
  parameters_.clear();
  cookies_.clear();
  excess_ = {};
}

namespace {

NamedValues values_within(const Parameters& parameters, std::string_view name, std::size_t repeats) noexcept {
  if (parameters.too_many()) return {{}, false};
  const auto values = parameters.named(name);
  return {values.first(std::min(values.size(), repeats)), values.size() <= repeats};
}

}  // namespace

NamedValues RequestHead::query_values(std::string_view name) const {
  parameters_.read_query(query, bounds.parameters);
  const auto found = values_within(parameters_, name, bounds.repeats);
  if (parameters_.too_many())
    note_excess({.kind = Excess::Kind::Parameters, .place = {}, .name = {}});
  else if (!found.complete)
    note_excess({.kind = Excess::Kind::Repeats, .place = "query parameter", .name = name});
  return found;
}

NamedValues RequestHead::cookie_values(std::string_view name) const {
  if (!cookies_.is_read()) {
    cookies_.begin_cookies();
    for (const auto& field : fields)
      if (field.id == FieldId::Cookie) cookies_.add_cookies(field.value, bounds.parameters);
    cookies_.end_cookies();
  }
  const auto found = values_within(cookies_, name, bounds.repeats);
  if (cookies_.too_many())
    note_excess({.kind = Excess::Kind::Cookies, .place = {}, .name = {}});
  else if (!found.complete)
    note_excess({.kind = Excess::Kind::Repeats, .place = "cookie", .name = name});
  return found;
}

void ResponseHead::clear() noexcept {
  status = 0;
  reason = {};
  fields.clear();
  minor_version = 1;
  framing = Framing::None;
  content_length = 0;
  length_known = trailers_may_follow = false;
  keep_alive = true;
  wants_upgrade = false;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  // The first comparison, which distinguishes case, is faster, and texts that are equal usually agree in
  // case, too.
  return a == b || std::equal(a.begin(), a.end(), b.begin(),
                              [](char x, char y) { return lower_octet(x) == lower_octet(y); });
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
