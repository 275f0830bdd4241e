// What became of an exchange's charges after they were made, and in which turn, for the line of the log that
// a replay reads. Part of the exchange's space; fixed in size, so that it can be written while memory is
// scarce.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/hybrid_timestamp.hpp"
#include "weir/observe/replay_record.hpp"

#include <cstddef>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

struct ChargeJournal {
  // A bill rarely has more than a few lines, and each is changed once.
  static constexpr std::size_t kMost = 16;

  limit::HybridTimestamp charged = 0;  // of the bill in the table; 0: nothing was charged there
  boost::container::static_vector<observe::Amendment, kMost> amendments;
  bool cut = false;  // there were more

  void note(const observe::Amendment& amendment) noexcept {
    if (amendments.size() == kMost)
      cut = true;
    else
      amendments.push_back(amendment);
  }
  void clear() noexcept {
    charged = 0;
    amendments.clear();
    cut = false;
  }
};

// A refund, of a departure at the epoch, for the caller to complete.
[[nodiscard]] inline observe::Amendment amendment_of(const limit::Charge& charge, base::TimePoint at,
                                                     limit::HybridTimestamp timestamp) noexcept {
  return {.elastic = charge.limiter_id % 2 != 0, .rule = charge.rule, .at = at, .timestamp = timestamp};
}

}  // namespace weir::proxy
