// Every key that a configuration may hold: what it takes, its default, what it is for. One table for each
// TOML table.
//
// The one place where a key is declared. It drives the reader (types, ranges, choices, defaults, what is
// missing or unknown) and the check that config/weir.toml shows every key.
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
  Mixed,      // read by hand: its section says what it takes
};

struct Choice {
  std::string_view word;
  std::string_view not_yet = {};  // what this version lacks for it; empty: available
};

struct KeySpec {
  std::string_view name;
  Kind kind = Kind::Text;
  std::string_view fallback = {};  // the default as written in TOML, without quotes; empty: none
  std::string_view about = {};
  // What this version lacks. The key is refused, never ignored; of a Bool, only `true` is.
  std::string_view not_yet = {};
  bool required = false;
  std::int64_t least = 0;
  std::int64_t most = 0;
  std::span<const Choice> choices = {};
};

struct TableSpec {
  std::span<const KeySpec> keys;
  [[nodiscard]] const KeySpec* find(std::string_view name) const noexcept;
};

namespace schema {
extern const TableSpec kRoot, kServer, kLog, kAdmin, kListener, kTls, kCertificate, kClient, kApiKeySource,
    kSource, kJwt, kState, kMemory, kRedis, kRedisTls, kUpstream, kServerOfUpstream, kEject, kHealth, kRetry,
    kTimeouts, kUpstreamTls, kRoute, kRespond, kMatch, kRule, kCost, kCharge, kElastic, kTier, kOverride,
    kKeysFile, kKey;
}  // namespace schema

}  // namespace weir::app
