#include "weir/http/described_head.hpp"

#include "weir/http/head.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::http {

namespace {

constexpr std::size_t kFixedParts = 32;  // more than the octets of all fixed parts

bool breaks_lines(std::string_view text) noexcept {
  return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos;
}

bool breaks_lines(DescribedFields fields) noexcept {
  return std::any_of(fields.begin(), fields.end(), [](const auto& field) {
    return breaks_lines(field.first) || breaks_lines(field.second);
  });
}

std::size_t most_octets(DescribedFields fields) noexcept {
  std::size_t most = kFixedParts;
  for (const auto& [name, value] : fields) most += name.size() + value.size() + 4;
  return most;
}

// Appends the fields and the empty line that ends the head.
void append_fields(std::string& text, DescribedFields fields) {
  for (const auto& [name, value] : fields) text.append(name).append(": ").append(value).append("\r\n");
  text += "\r\n";
}

}  // namespace

bool has_field(DescribedFields fields, std::string_view name) noexcept {
  return std::any_of(fields.begin(), fields.end(),
                     [&](const auto& field) { return equal_ignoring_case(field.first, name); });
}

std::optional<std::string> head_text(const DescribedHead& head) {
  if (breaks_lines(head.method) || breaks_lines(head.target) || breaks_lines(head.host) ||
      breaks_lines(head.fields))
    return std::nullopt;
  std::string text;
  text.reserve(most_octets(head.fields) + head.method.size() + head.target.size() + head.host.size());
  text.append(head.method).append(" ").append(head.target);
  text.append(head.minor_version == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  if (!head.host.empty()) text.append("Host: ").append(head.host).append("\r\n");
  append_fields(text, head.fields);
  return text;
}

std::optional<std::string> head_text(const DescribedAnswer& head) {
  if (breaks_lines(head.fields)) return std::nullopt;
  std::string text;
  text.reserve(most_octets(head.fields));
  text.append("HTTP/1.1 ").append(std::to_string(head.status)).append(" \r\n");
  append_fields(text, head.fields);
  return text;
}

}  // namespace weir::http
