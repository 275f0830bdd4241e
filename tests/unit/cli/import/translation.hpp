// Translates nginx configurations, for tests of weir import.
#pragma once

#include "cli/import/syntax/nginx_parser.hpp"
#include "cli/import/translate.hpp"

#include "weir/config/config_errors.hpp"
#include "weir/config/settings.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weir::cli::nginx {

struct Translated {
  std::string toml;
  std::vector<std::string> notes;
};

// Returns the translation and weir import's notes about it. If the translation fails, `toml` is "fault: " and
// the error.
inline Translated translation(const Directives& directives) {
  Notes notes;
  const auto toml = translate(directives, "/etc/nginx", notes);
  Translated result{toml ? *toml : "fault: " + toml.error().message, {}};
  for (const auto& note : notes.sorted()) result.notes.push_back(note.line());
  return result;
}

inline std::vector<std::string> mistakes_of(const std::string& toml) {
  try {
    (void)config::parse_settings(toml, "weir.toml");
    return {};
  } catch (const config::ConfigError& error) {
    return {error.mistakes().begin(), error.mistakes().end()};
  }
}

inline Translated of(const std::string& text) {
  auto parsed = parse_nginx(text, "n.conf");
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  auto result = translation(*parsed);
  EXPECT_THAT(mistakes_of(result.toml), testing::IsEmpty()) << result.toml;
  return result;
}

// Translates a location "/" that contains `directives`. The text `http` precedes the location's server block.
inline Translated of_location(const std::string& directives, const std::string& http = "") {
  return of(http + " server { location / { proxy_pass http://127.0.0.1:9000; proxy_set_header Host $host; " +
            directives + " } }");
}

}  // namespace weir::cli::nginx
