// Changes the text of a keys file ([client] keys): adds a key, changes the owner of a key, or removes a key.
// All other lines of the text stay as they are. A comment is lost only if it is on a line that the change
// removes. Pure.
#pragma once

#include "weir/policy/api_keys.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::config {

// The change of one API key. The key is given by `digest` or, if the file has it, by `id` (ApiKeys::id_of()).
struct KeyEdit {
  std::optional<policy::ApiKeys::Sha256> digest{};
  std::string id{};  // used if `digest` is absent
  // The new values of the key's owner. A new key has no values before the change. Absent: remove the
  // key.
  std::optional<policy::ApiKeyOwnerChange> owner{};
};

enum class KeyEditFault : std::uint8_t {
  None,
  Unknown,     // the file lacks the key
  Mistakes,    // the file has a mistake
  OtherForm,   // the file writes keys in a form that this code cannot change
  Unreadable,  // the file cannot be read
  Busy,        // another process changes the file at this moment
  Unwritable,  // the file cannot be replaced
};

struct EditedKeys {
  KeyEditFault fault = KeyEditFault::None;
  std::string why{};                         // a sentence that says what to do; empty if there is no fault
  std::string text{};                        // the new text of the file
  policy::ApiKeys keys{};                    // all keys in the new text
  policy::ApiKeys::Sha256 digest{};          // the digest of the changed key
  policy::ApiKeyOwner owner{};               // the new owner of this key; for a removed key: its last owner
  std::optional<policy::ApiKeyOwner> was{};  // the owner before the change; absent: the key is new
};

// Returns the text with the change. Parses the new text, and checks that exactly the requested change was
// made. `file`: the name of the file for messages, which never show an API key.
[[nodiscard]] EditedKeys edit_keys(std::string_view text, const std::string& file, const KeyEdit& edit);

struct Settings;
// Returns a warning if no rule or route uses the tier. A key with such a tier gets the limits of keys without
// a tier. `settings`: the configuration in use.
[[nodiscard]] std::optional<std::string> warn_of_unused_tier(const Settings& settings, std::string_view tier);

}  // namespace weir::config
