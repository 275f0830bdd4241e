// Fuzzes configurations of nginx as `weir import` reads them. Any text must be translated, or be rejected
// with its place. The translation must be TOML.
#include "cli/import/syntax/nginx_parser.hpp"
#include "cli/import/translate.hpp"
#include "config/read/toml_reader.hpp"
#include "fuzz/input.hpp"

#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  const auto parsed = cli::nginx::parse_nginx({reinterpret_cast<const char*>(bytes), size}, "n.conf");
  if (!parsed) {
    fuzz::require(parsed.error().message.starts_with("n.conf:"), "a fault says where");
    return 0;
  }
  cli::nginx::Notes notes;
  const auto toml = cli::nginx::translate(*parsed, "/etc/nginx", notes);
  for (const auto& note : notes.sorted())
    fuzz::require(note.line().starts_with("n.conf:"), "a note says where");
  if (!toml) return 0;
  config::ConfigErrors mistakes;
  (void)config::read_toml(*toml, "weir.toml", mistakes);
  for (const auto& line : mistakes.lines())
    fuzz::require(line.find("${") != std::string::npos || line.find("environment") != std::string::npos,
                  "the translation is TOML");
  return 0;
}
