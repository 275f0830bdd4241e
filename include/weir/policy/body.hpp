// What may be asked of the text of a small body. Pure; whoever calls it has the whole body in memory.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weir::policy {

// The form in which `body_contains` compares: ASCII letters in lower case, all else as it is.
[[nodiscard]] std::string body_word(std::string_view text);

// Whether any of the words stands anywhere in the body, without regard to the case of ASCII letters. REQUIRES
// that each is as `body_word` makes it; an empty one stands in every body.
[[nodiscard]] bool body_contains(std::string_view body, std::span<const std::string> words) noexcept;

}  // namespace weir::policy
