// Reads the keys file ([client] keys), which lists API keys and their owners. Pure: parses a text and opens
// no file.
#pragma once

#include "weir/config/config_errors.hpp"
#include "weir/policy/api_keys.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// A tier that at least one API key in the keys file has.
struct AssignedTier {
  std::string where;  // location of the first API key with the tier, such as "keys.toml:7"
  bool alone = true;  // true: no API key with the tier has a user, an org or a service
};

// Where the [[key]] table of an API key begins.
struct KeyLine {
  policy::ApiKeys::Sha256 digest{};
  int line = 0;
};

struct KeysFile {
  policy::ApiKeys ring;
  std::vector<KeyLine> lines;  // in the order of the file
  std::map<std::string, AssignedTier> tiers;
};

// Parses a TOML text of [[key]] tables, and returns the API keys in tables without a mistake. `file`: the
// name of the file for messages. Messages never show an API key.
[[nodiscard]] KeysFile read_keys(std::string_view text, const std::string& file, ConfigErrors& mistakes);

}  // namespace weir::config
