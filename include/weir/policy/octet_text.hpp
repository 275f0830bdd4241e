// Converts octets from a client to text that is readable and valid in JSON, and back. Octets that are not
// UTF-8 become %XX. A '%' before two hexadecimal digits becomes %25.
//
//   a <FF> b   ◄──►  a%FFb          100%  ◄──►  100%          a%FFb  ◄──►  a%25FFb
#pragma once

#include <string>
#include <string_view>

namespace weir::policy {

[[nodiscard]] std::string octet_text(std::string_view octets);
// Reverses octet_text(). Decodes each %XX in `text`.
[[nodiscard]] std::string octets_of(std::string_view text);

}  // namespace weir::policy
