// Every key that a configuration may hold: what it takes, its default, what it is for. One table for each
// TOML table.
//
// The one place where a key is declared. It drives the reader (types, ranges, choices, defaults, what is
// missing or unknown), the check that config/weir.toml shows every key, and `weir schema`, from which editors
// and docs/configuration.md have them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace weir::app {

enum class Kind : std::uint8_t {
  Bool,
  Whole,  // a number from `least` to `most`
  Text,
  Choice,     // one of `choices`
  Duration,   // "250ms"
  Size,       // "64KiB", or a number of bytes
  Rate,       // "10/s"
  Limit,      // a rate, or a whole number: the algorithm says which
  Address,    // "host:port", "[v6]:port", "unix:/path"
  Texts,      // a list of strings
  OneOrMore,  // a string or a list of strings
  Subtable,   // a table with keys of its own
  Subtables,  // a list of such tables
  Named,      // a table whose keys are names that the user chooses
  Mixed,      // read by hand: any of its shapes
  // Of shapes alone.
  Each,     // a list of what has any of its shapes
  Share,    // a number, with or without a fraction, from `least` to `most` hundredths
  Present,  // true, and never false
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
  // Of a key that is another table's, though people look for it here: what to write, and where. It is
  // refused.
  std::string_view instead = {};
  bool required = false;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::span<const Choice> choices = {};
  // What a text looks like (schema_patterns.hpp), or each of them; empty: anything.
  std::string_view pattern = {};
  // Of Subtable and Subtables the keys of the table; of Mixed, Each and Named the shapes that it, or what it
  // holds, may have. Never null for these, null for all others.
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

}  // namespace weir::app
