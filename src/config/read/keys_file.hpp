// Reads the keys file ([client] keys), which lists API keys and their holders. Pure: reads text, opens no
// file.
#pragma once

#include "weir/config/config_errors.hpp"
#include "weir/policy/api_keys.hpp"

#include <map>
#include <string>
#include <string_view>

namespace weir::config {

// A tier that the keys file assigns to a key.
struct AssignedTier {
  std::string where;  // the first key with the tier, as "keys.toml:7"
  bool alone = true;  // no key with this tier has a user, an org or a service
};

struct KeysFile {
  policy::ApiKeys ring;
  std::map<std::string, AssignedTier> tiers;
};

// Returns the keys of a TOML text of [[key]] tables, without the faulty keys. `file`: the name of the file in
// messages. A message about a key never shows the key.
[[nodiscard]] KeysFile read_keys(std::string_view text, const std::string& file, ConfigErrors& mistakes);

}  // namespace weir::config
