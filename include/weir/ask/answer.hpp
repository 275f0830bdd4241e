// The answer to a question: the decision of weir's rules. Plain values.
#pragma once

#include "weir/base/time.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::ask {

// The decision for one descriptor of a question, and the state of the limit that decides about it.
struct DescriptorStatus {
  bool allowed = true;
  std::string rule{};  // empty: no rule limits this descriptor, and the members below have no meaning
  std::uint64_t limit = 0;
  base::Duration window{0};  // the time in which a used-up limit refills; zero: the limit does not refill
  std::uint64_t remaining = 0;
  base::Duration reset_after{0};  // the time until the limit is completely unused
};

struct Answer {
  bool allowed = false;
  unsigned status = 0;  // the status with which weir would answer the request; 200 if allowed
  std::string rule{};   // the rule that refused, or the rule with the smallest remaining share; empty: none
  // The numbers of the limit of the rule in `rule`; nullopt if no rule applied.
  std::optional<std::uint64_t> limit{};
  std::optional<std::uint64_t> remaining{};
  std::optional<std::uint64_t> retry_after_seconds{};  // set if waiting helps; rounded up
  std::optional<base::Duration> reset_after{};
  base::Duration wait{0};  // how long the asker must delay the request
  // header lines for the client, each with its CRLF: the rate-limit fields, and further fields of a refusal
  std::string fields{};
  std::string content_type{};  // the type of `body`
  std::string body{};          // the body of the refusal; empty if allowed
  std::string permit{};        // the name of the permit; empty: there is nothing to settle
  std::string error{};         // why weir could not decide; empty: weir has decided. `status` is 503 or 504.
  // True: weir itself failed, so the refusal says nothing about the request. False: a refusal is due to the
  // rules or to the request.
  bool failed = false;
  // One status for each descriptor, in the order of the question. Rules that concern the whole question
  // affect every status. If weir answers before its rules have decided, no descriptor is allowed.
  std::vector<DescriptorStatus> descriptors{};
};

}  // namespace weir::ask
