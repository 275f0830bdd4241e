// One line of weir's own access log, read back (weir/observe/replay_record.hpp says what it holds).
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/turn.hpp"
#include "weir/observe/replay_record.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::replay {

// Whether the request was let in.
enum class Verdict : std::uint8_t {
  Admitted,
  Refused,
  Unmet,   // it did not say what a rule needs to know
  Closed,  // the store of a rule was away
};

struct SaidRule {
  std::string_view rule;
  std::uint32_t asks = 0;
  limit::Key key;
  limit::Cost cost = 1;
  std::string_view says;
  std::uint16_t variant = 0;
  bool elastic = false;
};

struct DoneAmendment {
  std::string_view rule;
  observe::Amendment what;  // its `rule` says nothing
};

// All of a key of a rule was given back.
struct Reset {
  std::string_view rule;
  std::uint32_t asks = 0;
  std::vector<observe::ForgottenKey> keys;
};

struct Line {
  bool is_reset = false;  // then `reset` alone says something, else all but that
  Reset reset;
  std::uint64_t run = 0;
  bool first = false;       // of its run
  base::TimePoint start{};  // by the clock of the weir that wrote it, as all instants here
  base::TimePoint asked{};
  base::Duration total{};
  base::Duration upstream{};
  limit::Turn turn = 0;
  base::IpAddress client;
  std::string_view method, target, host, route;
  std::string_view api_key, user, org, service, device, tier, country;
  std::optional<double> load;
  unsigned status = 0;
  Verdict verdict = Verdict::Admitted;
  std::string_view unmet;   // the rule, of Unmet
  bool unverified = false;  // nobody verified its token, so what its claims say is absent
  std::vector<SaidRule> rules;
  std::vector<DoneAmendment> amendments;
};

// Why a line cannot be used.
enum class Unusable : std::uint8_t {
  NoJson,    // no object on a line of its own: cut short, or not weir's
  NoReplay,  // written without the field "replay"
  Unasked,   // it ended before any rule decided: a bad head, an unknown key, shed load, a client that left
  Closed,    // a rule's store was away, and the rule closed: nothing was decided
  Cut,       // a text or the list of amendments was too long for the line
  Lost,      // decided by a process that another had taken over from: nobody knows what it charged
  Lacking,   // a field has gone, or says nothing that weir writes
};
inline constexpr std::size_t kUnusable = 7;
inline constexpr const char* kUnusableWords[kUnusable] = {
    "no JSON object, or cut short",
    "written without the field \"replay\"",
    "ended before any rule decided",
    "the store of a rule was away, and the rule closed",
    "a text or list is longer than a line of the log holds",
    "decided in memory by a process that another had taken over from",
    "a field is missing or says what weir does not write"};

// Reads line by line into memory of its own, used again.
class LineReader {
 public:
  LineReader();
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // Null, and `why`, where the line cannot be used. The views live until the next call.
  [[nodiscard]] const Line* read(std::string_view text, Unusable& why);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// "2026-02-20T10:00:00.123456Z", as the log writes it; nullopt where it is anything else.
[[nodiscard]] std::optional<base::TimePoint> parse_time(std::string_view text) noexcept;

}  // namespace weir::replay
