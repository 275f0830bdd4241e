// Parses values in nginx's notation, and writes values in TOML's notation. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::cli::nginx {

// Parses a whole number without a sign. Returns nullopt for any other text.
[[nodiscard]] std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;

// Parses a size in bytes: "512", "16k", "10m", "1g".
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;

// Parses a time: "30", "30s", "500ms", "1h30m". A number without a unit is in seconds.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_time(std::string_view text);

// Returns the text after `prefix`. Returns nullopt if `text` does not begin with `prefix`.
[[nodiscard]] std::optional<std::string> after(std::string_view text, std::string_view prefix);

// Returns a text in quotes, as TOML writes it.
[[nodiscard]] std::string toml_string(std::string_view text);

// Returns the text with each control character as \xXX, for comments and terminals.
[[nodiscard]] std::string printable(std::string_view text);

// Returns a time or a size with the largest unit that fits, in quotes.
[[nodiscard]] std::string toml_time(std::chrono::milliseconds time);
[[nodiscard]] std::string toml_size(std::uint64_t bytes);

// Converts a regular expression from PCRE's notation to RE2's: (?<name>…) becomes (?P<name>…).
[[nodiscard]] std::string re2_notation(std::string_view pcre);

// Returns a regular expression that matches this text literally.
[[nodiscard]] std::string literal_pattern(std::string_view text);

}  // namespace weir::cli::nginx
