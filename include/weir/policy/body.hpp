// What may be asked of the text of a small body. Pure; whoever calls it has the whole body in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::policy {

// As much as a request's body was looked at before it is decided on.
struct RequestBody {
  enum class State : std::uint8_t {
    Unread,   // not at all: no rule asks for it
    Whole,    // `text` is all of it, or there is none
    TooLong,  // there is more of it than any rule reads
    Coded,    // compressed or so (Content-Encoding): what it says cannot be read here
  };
  State state = State::Unread;
  std::string_view text{};
};

// The form in which `body_contains` compares: ASCII letters in lower case, all else as it is.
[[nodiscard]] std::string body_word(std::string_view text);

// Whether any of the words stands anywhere in the body, without regard to the case of ASCII letters: as it
// came, or with the escapes of JSON (\u0041, \/) or of forms (%41, +) undone, whatever the body claims to be,
// so that no spelling which an upstream undoes hides a word. REQUIRES that each is as `body_word` makes it;
// an empty one stands in every body.
[[nodiscard]] bool body_contains(std::string_view body, std::span<const std::string> words);

}  // namespace weir::policy
