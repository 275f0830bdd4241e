#include "config/read/client/keys_file.hpp"

#include "config/read/table_reader.hpp"

#include <optional>
#include <utility>

namespace weir::config {

namespace {

// Returns the digest of the API key in a [[key]] table. Error messages never show the API key.
std::optional<policy::ApiKeys::Sha256> read_digest(const TableReader& table) {
  if (table.has("key") == table.has("sha256")) {
    table.mistake("", table.has("key") ? "found both key and sha256; expected one of them"
                                       : "found neither key nor sha256; expected one of them");
    return std::nullopt;
  }
  if (table.has("key")) {
    if (!table.text("key").empty()) return policy::ApiKeys::digest(table.text("key"));
    table.mistake("key", "found \"\"; expected an API key");
    return std::nullopt;
  }
  const auto digest = policy::ApiKeys::parse_digest(table.text("sha256"));
  if (!digest) table.mistake("sha256", "not a SHA-256; expected 64 hexadecimal digits");
  return digest;
}

}  // namespace

KeysFile read_keys(std::string_view text, const std::string& file, ConfigErrors& mistakes) {
  KeysFile keys;
  const auto document = read_toml(text, file, mistakes, Quoting::Nothing);
  const TableReader root(&document, 1, "", schema::kKeysFile, {&file, &mistakes});
  for (const auto& table : root.tables("key", schema::kKey)) {
    policy::ApiKeyOwner holder{table.text("user"), table.text("org"), table.text("tier"),
                               table.text("service")};
    if (!holder.tier.empty()) {
      auto& given = keys.tiers[holder.tier];
      if (given.where.empty()) given.where = file + ":" + std::to_string(table.line());
      given.alone = given.alone && holder.user.empty() && holder.org.empty() && holder.service.empty();
    }
    const auto digest = read_digest(table);
    if (digest && keys.ring.add(*digest, std::move(holder)))
      keys.lines.push_back({*digest, table.line()});
    else if (digest)
      table.mistake("", "this key appears in the file twice; remove one of them");
  }
  return keys;
}

}  // namespace weir::config
