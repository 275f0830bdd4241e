// Fuzzes keys files: any text, and valid files with damage. weir must report each mistake with its position.
// In a valid file it must find every key with its owner.
#include "config/read/client/keys_file.hpp"
#include "fuzz/input.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::fuzz {
namespace {

const std::string kFile = "keys.toml";

void read_any(std::string_view text) {
  config::ConfigErrors mistakes;
  const auto keys = config::read_keys(text, kFile, mistakes);
  for (const auto& line : mistakes.lines()) require(line.starts_with(kFile + ":"), "a mistake says where");
  for (const auto& [tier, given] : keys.tiers)
    require(!tier.empty() && given.where.starts_with(kFile + ":"), "a tier says where it is given");
}

std::string key_of(std::size_t number) {
  return "Zq9-secret-" + std::to_string(number);
}

constexpr const char* kTiers[] = {"", "gold", "free"};

std::string some_keys(Input& in, std::vector<std::string>& tiers) {
  std::string text;
  for (auto left = in.byte() % 6; left > 0; --left) {
    text += "[[key]]\nkey = \"" + key_of(tiers.size()) + "\"\n";
    const auto outcome = in.byte();
    tiers.emplace_back(kTiers[outcome % 3]);
    if (!tiers.back().empty()) text += "tier = \"" + tiers.back() + "\"\n";
    if ((outcome & 64) != 0) text += "user = \"u\"\n";
    if ((outcome & 128) != 0) text += "org = 'o'\n";
  }
  return text;
}

void read_good(const std::string& text, const std::vector<std::string>& tiers) {
  config::ConfigErrors mistakes;
  const auto keys = config::read_keys(text, kFile, mistakes);
  require(mistakes.empty(), "a good file has no mistake");
  require(keys.ring.size() == tiers.size(), "each key is on the ring once");
  for (std::size_t i = 0; i < tiers.size(); ++i) {
    const auto* owner = keys.ring.find(key_of(i));
    require(owner != nullptr && owner->tier == tiers[i], "a key is found, with its tier");
    require(tiers[i].empty() || keys.tiers.contains(tiers[i]), "its tier is known");
  }
}

void read_damaged(std::string text, Input& in) {
  while (!text.empty() && in.left() > 3) {
    const std::size_t at = (std::size_t{in.byte()} << 8 | in.byte()) % text.size();
    switch (in.byte() % 3) {
      case 0:
        text[at] = static_cast<char>(in.byte());
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(in.byte()));
        break;
      default:
        text.erase(at, 1 + in.byte() % 4);
    }
  }
  read_any(text);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  read_any({reinterpret_cast<const char*>(bytes), size});
  Input in(bytes, size);
  std::vector<std::string> tiers;
  const auto text = some_keys(in, tiers);
  read_good(text, tiers);
  read_damaged(text, in);
  return 0;
}
