// ChargeJournal records the changes to an exchange's charges, in order, for the log line that a replay reads.
// It is part of ExchangeBuffers. Its size is fixed, so that recording needs no memory.
#pragma once

#include "weir/limit/charge.hpp"
#include "weir/limit/hybrid_timestamp.hpp"
#include "weir/observe/replay_record.hpp"

#include <cstddef>

#include <boost/container/static_vector.hpp>

namespace weir::proxy {

struct ChargeJournal {
  // The largest number of amendments (later changes of charges) in a journal. Requests rarely reach this
  // number: they have few charges, and most charges change at most once.
  static constexpr std::size_t kMost = 16;

  limit::HybridTimestamp charged = 0;  // when the key table was charged; 0: it was not charged
  boost::container::static_vector<observe::Amendment, kMost> amendments;
  bool cut = false;  // true if the journal was full, so that further amendments were omitted

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

// Returns an amendment (a later change of a charge) that the caller completes. By default, the amendment is a
// refund without a departure.
[[nodiscard]] inline observe::Amendment amendment_of(const limit::Charge& charge, base::TimePoint at,
                                                     limit::HybridTimestamp timestamp) noexcept {
  return {.elastic = charge.limiter_id % 2 != 0, .rule = charge.rule, .at = at, .timestamp = timestamp};
}

}  // namespace weir::proxy
