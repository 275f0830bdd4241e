// Searches the text of a small request body. Pure; the caller has the whole body in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::policy {

class BodyValues;

// The part of a request's body that weir has read before it decides about the request.
struct RequestBody {
  enum class State : std::uint8_t {
    Unread,      // weir has not read the body, because no rule reads it
    Whole,       // `text` is the whole body; empty if there is no body
    TooLong,     // the body is longer than the bound of the rules (`max_body`)
    OverMemory,  // the bodies in memory already use up max_body_memory
    Coded,       // the body is compressed or otherwise encoded (Content-Encoding), so weir cannot read it
  };
  State state = State::Unread;
  std::string_view text{};
  // The values that keys and conditions read; null unless the body is Whole.
  const BodyValues* values = nullptr;
};

// Returns the word in the form that body_contains() expects: with ASCII letters in lower case.
[[nodiscard]] std::string body_word(std::string_view text);

// Returns true if the body contains any of the words. Ignores the case of ASCII letters. Searches the body as
// received, and again after decoding the escapes of JSON (\u0041, \/) and of forms (%41, +), whatever the
// Content-Type is. So an escape that the upstream decodes cannot hide a word. Every body contains an empty
// word. REQUIRES: each word is a result of body_word().
[[nodiscard]] bool body_contains(std::string_view body, std::span<const std::string> words);

}  // namespace weir::policy
