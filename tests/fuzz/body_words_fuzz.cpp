// Fuzzes `body_contains`. A word must be found in every body that contains it, in each encoding that a server
// would decode, with any text around it. Other words must not be found.
#include "fuzz/input.hpp"

#include "weir/policy/body.hpp"

#include <array>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

constexpr std::string_view kHex = "0123456789aBcDeF";

bool contains(const std::string& body, const std::string& word) {
  const std::array words{policy::body_word(word)};
  return policy::body_contains(body, words);
}

char hex(unsigned value) {
  return kHex[value & 15];
}

std::string percent_encoded(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const auto octet = static_cast<unsigned char>(c);
    out += {'%', hex(octet >> 4), hex(octet)};
  }
  return out;
}

// Returns the word with every ASCII character written as \u00XX.
std::string json_escaped(std::string_view word) {
  std::string out;
  for (const char c : word) {
    const auto octet = static_cast<unsigned char>(c);
    out += std::string("\\u00") + hex(octet >> 4) + hex(octet);
  }
  return out;
}

// Returns the text without bytes that could form an escape sequence with the bytes before or after the text.
std::string harmless(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (static_cast<unsigned char>(c) < 0x80 && c != '%' && c != '\\' && c != '+') out += c;
  return out;
}

void run(std::string_view input) {
  if (input.empty()) return;
  const auto cut = static_cast<unsigned char>(input[0]) % 16 + 1U;
  const std::string word = harmless(input.substr(1, cut));
  const std::string around(input.substr(std::min<std::size_t>(input.size(), 1 + cut)));
  const std::string before = harmless(around);
  if (word.empty()) return;
  require(contains(around + word, word), "a body that ends in the word contains it");
  require(contains(word + around, word), "a body that begins with the word contains it");
  require(contains(before + percent_encoded(word) + before, word), "a form's escapes hide no word");
  require(contains(before + json_escaped(word) + before, word), "JSON's escapes hide no word");
  require(policy::body_contains(around, std::array{policy::body_word(around)}), "a body contains itself");
  require(!policy::body_contains(around, {}), "no word is in no body");
  if (before.find_first_of("xX\n") == std::string::npos && before == around)
    require(!contains(before, word + "\nx"), "a word that no spelling holds is not found");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
