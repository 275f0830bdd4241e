// Fuzzes nginx configurations and Kubernetes Ingresses as `weir import` reads them. weir must translate a
// text into TOML, or reject it with the position of the mistake.
#include "cli/import/syntax/nginx_parser.hpp"
#include "cli/import/translate.hpp"
#include "config/read/toml_reader.hpp"
#include "fuzz/input.hpp"

#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

const std::string kFile = "n.conf";

void check(const base::Result<std::string>& toml, const cli::nginx::Notes& notes) {
  for (const auto& note : notes.sorted()) require(note.line().starts_with(kFile + ":"), "a note says where");
  if (!toml) return require(!toml.error().message.empty(), "a fault has a sentence");
  config::ConfigErrors mistakes;
  (void)config::read_toml(*toml, "weir.toml", mistakes);
  for (const auto& line : mistakes.lines())
    require(line.find("${") != std::string::npos || line.find("environment") != std::string::npos,
            "the translation is TOML");
}

void import_nginx(std::string_view text) {
  const auto parsed = cli::nginx::parse_nginx(text, kFile);
  if (!parsed) return require(parsed.error().message.starts_with(kFile + ":"), "a fault says where");
  cli::nginx::Notes notes;
  const auto toml = cli::nginx::translate(*parsed, "/etc/nginx", notes);
  check(toml, notes);
}

void import_ingresses(std::string_view text) {
  cli::nginx::Notes notes;
  const auto toml = cli::nginx::translate_ingresses(text, kFile, notes);
  check(toml, notes);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  weir::fuzz::import_nginx(text);
  weir::fuzz::import_ingresses(text);
  return 0;
}
