// Reads lines of weir's access log (weir/observe/replay_record.hpp describes their content).
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/hybrid_timestamp.hpp"
#include "weir/observe/replay_record.hpp"
#include "weir/policy/descriptor.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::replay {

// The decision about a request, according to the log.
enum class Verdict : std::uint8_t {
  Admitted,
  Refused,
  Unmet,  // refused: the request lacked a value that a rule needs
};

// The decision of one rule in a log line. Members as in observe::AppliedRule. `asks`: a digest of what the
// rule reads of a request (policy::Rule::asks).
struct LoggedRule {
  std::string_view rule;
  std::uint32_t asks = 0;
  limit::Key key;
  limit::Cost cost = 1;
  std::string_view outcome;
  std::uint16_t variant = 0;
  bool elastic = false;
  limit::Factor factor = limit::kWholeFactor;
};

struct DoneAmendment {
  std::string_view rule;
  observe::Amendment what;  // `what.rule` is unused
};

// A reset of one client under one rule. `keys`: all keys that the client has under the rule.
struct Reset {
  std::string_view rule;
  std::uint32_t asks = 0;
  std::vector<observe::ForgottenKey> keys;
};

// The values of a question (weir/observe/question_record.hpp).
struct LoggedQuestion {
  std::string_view domain;
  std::optional<limit::Cost> cost;
  std::vector<policy::Descriptor> descriptors;
  std::vector<std::string_view> hidden;  // names of the values that are digests
};

struct LogLine {
  // True: the line is about a reset, and only `reset` is set. False: the line is about a request, and `reset`
  // is not set.
  bool is_reset = false;
  Reset reset;
  std::uint64_t run = 0;    // identifies the key table (observe::run_of)
  bool first = false;       // true: the first line about the key table, which began empty
  base::TimePoint start{};  // when the request started; by weir's own clock, like all instants in this struct
  base::TimePoint evaluated_at{};
  base::Duration total{};
  base::Duration upstream{};
  std::optional<std::uint64_t> bytes_in, bytes_out;  // octets of the bodies; nullopt: not logged
  limit::HybridTimestamp timestamp = 0;
  base::IpAddress client;
  std::string_view method, target, host, route;
  std::string_view api_key, user, org, service, device, tier, country;
  std::optional<double> load;
  unsigned status = 0;
  Verdict verdict = Verdict::Admitted;
  std::string_view unmet;   // if `verdict` is Unmet: the name of the rule that refused the request
  bool unverified = false;  // true: the token was not verified, so its claims are absent
  std::vector<LoggedRule> rules;
  std::vector<DoneAmendment> amendments;
  bool is_question = false;  // true: `question` is set. False: no question, or its values were not logged.
  LoggedQuestion question;
};

// The reasons why a line is unusable.
enum class Unusable : std::uint8_t {
  NoJson,    // not a complete JSON object: truncated, or not written by weir
  NoReplay,  // has no field "replay"
  Unasked,   // ended before any rule decided: bad head, unknown key, shed load, or client gone
  Closed,    // refused because a rule's store (Redis) did not answer, so no rule decided
  Cut,       // a text or the list of amendments is truncated, because it did not fit in the line
  Lost,      // decided by the old process during an upgrade, so the new process's key table lacks the charges
  Lacking,   // a field is missing, or has a value that weir never writes
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

// Parses one line at a time. The replay owns one reader. The parsed line uses the reader's memory, which the
// next call overwrites.
class LogLineReader {
 public:
  LogLineReader();
  ~LogLineReader();
  LogLineReader(const LogLineReader&) = delete;
  LogLineReader& operator=(const LogLineReader&) = delete;

  // Parses a line. If the line is unusable, returns null and sets `why`. Views in the result are valid until
  // the next call.
  [[nodiscard]] const LogLine* read(std::string_view text, Unusable& why);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Parses a time as the log writes it: "2026-02-20T10:00:00.123456Z". Returns nullopt for any other text.
[[nodiscard]] std::optional<base::TimePoint> parse_time(std::string_view text) noexcept;

}  // namespace weir::replay
