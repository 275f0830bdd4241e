#include "weir/http/percent.hpp"

namespace weir::http {

namespace {

// Takes the octet, encoded or not, off the front of `rest`, which is not empty.
char take_octet(std::string_view& rest) noexcept {
  const auto octet = encoded_octet(rest);
  const char c = octet ? *octet : rest.front();
  rest.remove_prefix(octet ? 3 : 1);
  return c;
}

}  // namespace

std::string_view percent_decoded(std::string_view raw, std::string& scratch) {
  if (raw.find('%') == std::string_view::npos) return raw;
  scratch.clear();
  while (!raw.empty()) scratch.push_back(take_octet(raw));
  return scratch;
}

bool decodes_to(std::string_view raw, std::string_view text) noexcept {
  if (raw.size() < text.size()) return false;  // decoding makes nothing longer
  for (const char c : text)
    if (raw.empty() || take_octet(raw) != c) return false;
  return raw.empty();
}

}  // namespace weir::http
