// Every key that a configuration may hold, with its type, default and purpose. One table for each TOML table.
//
// No other file declares keys. The schema drives the reader: types, ranges, choices, defaults, missing and
// unknown keys. A test checks that config/weir.toml shows every key. `weir schema` prints the schema for
// editors and for docs/configuration.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir::config {

enum class Kind : std::uint8_t {
  Bool,
  Whole,  // a whole number from `least` to `most`
  Text,
  Choice,     // one of `choices`
  Duration,   // "250ms"
  Size,       // "64KiB", or a number of bytes
  Rate,       // "10/s"
  Limit,      // a rate or a whole number, depending on the algorithm
  Address,    // "host:port", "[v6]:port", "unix:/path"
  Texts,      // a list of strings
  OneOrMore,  // a string or a list of strings
  Subtable,   // a table with keys of its own
  Subtables,  // a list of tables
  Named,      // a table whose keys are names that the user chooses
  Mixed,      // read by hand; has one of several shapes
  // The kinds below occur only as shapes.
  Each,     // a list whose elements have one of several shapes
  Share,    // a number, with or without a fraction, from `least` to `most` hundredths
  Present,  // true; false is not allowed
};

struct Choice {
  std::string_view word;
};

struct TableSpec;

struct KeySpec {
  std::string_view name = {};  // a shape has none
  Kind kind = Kind::Text;
  std::string_view fallback = {};  // the default as written in TOML, without quotes; empty: none
  std::string_view about = {};
  // For a key that people look for here but that belongs to another table: what to write, and where. The
  // reader rejects the key with this advice.
  std::string_view instead = {};
  bool required = false;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::span<const Choice> choices = {};
  // A regular expression for the text, or for each text (schema_patterns.hpp); empty: any text.
  std::string_view pattern = {};
  // For Subtable and Subtables: the keys of the table. For Mixed, Each and Named: the possible shapes of the
  // value or of its elements. Never null for these kinds, and null for all others.
  const TableSpec* inner = nullptr;
};

struct TableSpec {
  std::span<const KeySpec> keys;
  [[nodiscard]] const KeySpec* find(std::string_view name) const noexcept;
};

namespace schema {
extern const TableSpec kRoot, kServer, kLog, kAdmin, kListener, kTls, kCertificate, kClient, kApiKeySource,
    kSource, kJwt, kState, kMemory, kRedis, kRedisTls, kUpstream, kServerOfUpstream, kEject, kHealth, kRetry,
    kTimeouts, kUpstreamTls, kRoute, kRespond, kMatch, kRule, kCost, kCharge, kElastic, kTier, kOverride,
    kKeysFile, kKey, kAlert;
}  // namespace schema

}  // namespace weir::config
