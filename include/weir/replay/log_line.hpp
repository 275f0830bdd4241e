// Reads a line of weir's access log (weir/observe/replay_record.hpp describes the content).
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/hybrid_timestamp.hpp"
#include "weir/observe/replay_record.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::replay {

// The decision about the request.
enum class Verdict : std::uint8_t {
  Admitted,
  Refused,
  Unmet,   // the request lacked something that a rule needs
  Closed,  // the store of a rule was away
};

struct LoggedRule {
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
  observe::Amendment what;  // its `rule` is unused
};

// All state of a key of a rule was reset.
struct Reset {
  std::string_view rule;
  std::uint32_t asks = 0;
  std::vector<observe::ForgottenKey> keys;
};

struct LogLine {
  bool is_reset = false;  // then only `reset` is set; otherwise all members but `reset`
  Reset reset;
  std::uint64_t run = 0;
  bool first = false;       // the first line of its run
  base::TimePoint start{};  // by the clock of the weir that wrote the line, as all instants here
  base::TimePoint asked{};
  base::Duration total{};
  base::Duration upstream{};
  limit::HybridTimestamp timestamp = 0;
  base::IpAddress client;
  std::string_view method, target, host, route;
  std::string_view api_key, user, org, service, device, tier, country;
  std::optional<double> load;
  unsigned status = 0;
  Verdict verdict = Verdict::Admitted;
  std::string_view unmet;   // the rule, if `verdict` is Unmet
  bool unverified = false;  // the token was not verified, so its claims are absent
  std::vector<LoggedRule> rules;
  std::vector<DoneAmendment> amendments;
};

// The reasons why a line is unusable.
enum class Unusable : std::uint8_t {
  NoJson,    // no JSON object on a line of its own: cut off, or not weir's
  NoReplay,  // written without the field "replay"
  Unasked,   // ended before any rule decided: bad head, unknown key, shed load, or a client that left
  Closed,    // a rule's store was away and the rule refused: nothing was decided
  Cut,       // a text or the list of amendments was too long for the line
  Lost,      // decided by a process that another had taken over from: its charges are unknown
  Lacking,   // a field is missing or has a value that weir does not write
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

// Reads line by line into its own memory, which it reuses.
class LogLineReader {
 public:
  LogLineReader();
  ~LogLineReader();
  LogLineReader(const LogLineReader&) = delete;
  LogLineReader& operator=(const LogLineReader&) = delete;

  // Returns null, and sets `why`, if the line is unusable. The views are valid until the next call.
  [[nodiscard]] const LogLine* read(std::string_view text, Unusable& why);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Parses "2026-02-20T10:00:00.123456Z", as the log writes it; nullopt for any other text.
[[nodiscard]] std::optional<base::TimePoint> parse_time(std::string_view text) noexcept;

}  // namespace weir::replay
