#include "weir/http/percent.hpp"

namespace weir::http {

namespace {

// Removes one octet, which may be encoded, from the front of `rest` and returns it. REQUIRES: `rest` is not
// empty.
char take_octet(std::string_view& rest, Plus plus) noexcept {
  const auto octet = encoded_octet(rest);
  const char c = octet ? *octet : rest.front();
  rest.remove_prefix(octet ? 3 : 1);
  return plus == Plus::Blank && !octet && c == '+' ? ' ' : c;
}

}  // namespace

std::string_view percent_decoded(std::string_view raw, std::string& scratch, Plus plus) {
  const bool plain = raw.find('%') == std::string_view::npos &&
                     (plus == Plus::Itself || raw.find('+') == std::string_view::npos);
  if (plain) return raw;
  scratch.clear();
  append_decoded(scratch, raw, plus);
  return scratch;
}

void append_decoded(std::string& out, std::string_view raw, Plus plus) {
  while (!raw.empty()) out.push_back(take_octet(raw, plus));
}

bool decodes_to(std::string_view raw, std::string_view text, Plus plus) noexcept {
  if (raw.size() < text.size()) return false;  // decoding makes no text longer
  for (const char c : text)
    if (raw.empty() || take_octet(raw, plus) != c) return false;
  return raw.empty();
}

}  // namespace weir::http
