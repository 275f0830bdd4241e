// Converts octets from a client to text that is readable and valid in JSON, and back. Octets that are not
// UTF-8 become %XX. So does a '%' that would otherwise look like the start of %XX.
//
//   a <FF> b   ◄──►  a%FFb          100%  ◄──►  100%          a%FFb  ◄──►  a%25FFb
#pragma once

#include <string>
#include <string_view>

namespace weir::policy {

[[nodiscard]] std::string octet_text(std::string_view octets);
// Returns the octets from which octet_text() made the text. In any other text, decodes each %XX.
[[nodiscard]] std::string octets_of(std::string_view text);

}  // namespace weir::policy
