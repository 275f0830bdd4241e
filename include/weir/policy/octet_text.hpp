// Octets that a client said, as text that people can read, JSON can hold, and weir takes back: what is no
// UTF-8 is written as %XX, and so is a '%' that would be taken for the beginning of that.
//
//   a <FF> b   ◄──►  a%FFb          100%  ◄──►  100%          a%FFb  ◄──►  a%25FFb
#pragma once

#include <string>
#include <string_view>

namespace weir::policy {

[[nodiscard]] std::string octet_text(std::string_view octets);
// What octet_text() has written; of any other text, what it says.
[[nodiscard]] std::string octets_of(std::string_view text);

}  // namespace weir::policy
