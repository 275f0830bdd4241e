// Fuzzes configuration texts. weir must read the text, or report each mistake with its line.
#include "config/read/toml_reader.hpp"
#include "fuzz/input.hpp"

#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  const std::string file = "fuzz.toml";
  config::ConfigErrors mistakes;
  const auto document =
      config::read_toml(std::string_view(reinterpret_cast<const char*>(bytes), size), file, mistakes);
  fuzz::require(document.table() != nullptr, "a document is a table");
  for (const auto& line : mistakes.lines())
    fuzz::require(line.starts_with(file + ":"), "a mistake says where");
  return 0;
}
