// The keys file ([client] keys): which API keys there are, and whose. Pure: reads text, opens no file.
#pragma once

#include "weir/config/mistakes.hpp"
#include "weir/policy/key_ring.hpp"

#include <map>
#include <string>
#include <string_view>

namespace weir::app {

// A tier that the keys file gives to somebody.
struct GivenTier {
  std::string where;  // of the first key that has it, as "keys.toml:7"
  bool alone = true;  // of its keys the file says nothing else: no user, no org, no service
};

struct KeysFile {
  policy::KeyRing ring;
  std::map<std::string, GivenTier> tiers;
};

// Returns the keys of a TOML text of [[key]] tables, those with mistakes left out. `file`: as messages name
// it. A message about a key never shows it.
[[nodiscard]] KeysFile read_keys(std::string_view text, const std::string& file, Mistakes& mistakes);

}  // namespace weir::app
