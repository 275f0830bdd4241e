// Every key that a configuration may have, with its type, default and purpose. Each TOML table has one C++
// table of its keys.
//
// No other file declares keys. The reader takes types, ranges, choices and defaults from this schema, and
// reports missing and unknown keys. A test checks that config/weir.toml shows every key. `weir schema` prints
// the schema for editors and for docs/configuration.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir::config {

enum class Kind : std::uint8_t {
  Bool,
  Whole,  // a whole number from `least` to `most`
  Text,
  Choice,           // one of `choices`
  Duration,         // "250ms"
  Size,             // "64KiB", or a number of bytes
  Rate,             // "10/s"
  Limit,            // a rate; for some algorithms a whole number
  Address,          // "host:port", "[v6]:port", "unix:/path"
  Texts,            // a list of strings
  OneOrMore,        // a string or a list of strings
  Subtable,         // a table with a schema of its own
  Subtables,        // a list of tables with one schema
  OneOrMoreTables,  // a table or a list of tables, all with one schema
  Named,            // a table whose keys are names that the user chooses
  Mixed,            // a value of one of several shapes, which the reader's code checks
  // The kinds below describe only shapes of values. No key has one of them as its kind.
  Each,     // a list; each element has one of several shapes
  Share,    // a number that may have a fraction; `least` and `most` are its bounds in hundredths
  Present,  // only the value `true`
};

struct Choice {
  std::string_view word;
};

struct TableSpec;

struct KeySpec {
  std::string_view name = {};  // the name of the key; empty if this only describes the shape of a value
  Kind kind = Kind::Text;
  std::string_view fallback = {};  // the default in TOML syntax without quotes; empty: none
  std::string_view about = {};
  // Set for a key that people write in this table although the key belongs to another table: advice on what
  // to write, and where. The reader rejects the key and shows the advice.
  std::string_view instead = {};
  bool required = false;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::span<const Choice> choices = {};
  // A regular expression (schema_patterns.hpp) for the string, or for each string of a list; empty: any
  // string is valid.
  std::string_view pattern = {};
  // For Subtable, Subtables and OneOrMoreTables: the keys of the table. For Mixed, Each and Named: the
  // possible shapes of the value or of its elements. Null for all other kinds, and only for them.
  const TableSpec* inner = nullptr;
};

struct TableSpec {
  std::span<const KeySpec> keys;
  [[nodiscard]] const KeySpec* find(std::string_view name) const noexcept;
};

namespace schema {
extern const TableSpec kRoot, kServer, kLog, kAdmin, kCors, kAcme, kExternalAccount, kListener, kTls,
    kCertificate, kHttp2, kClient, kApiKeySource, kSource, kTierSource, kJwt, kKeyFetch, kState, kTracing,
    kMemory, kRedis, kRedisTls, kUpstream, kServerOfUpstream, kEject, kHealth, kRetry, kTimeouts,
    kUpstreamTls, kRoute, kRespond, kHeaders, kFieldEdits, kRewrite, kMatch, kRule, kCost, kReserve, kStream,
    kCharge, kElastic, kAdapt, kPenalty, kTier, kOverride, kKeysFile, kKey, kAlert;
}  // namespace schema

}  // namespace weir::config
