#include "weir/proxy/edition.hpp"

#include <algorithm>

namespace weir::proxy {

Terms::Terms(net::Executor executor, net::Watchdog& watchdog, std::shared_ptr<const Edition> edition)
    : executor_(executor), watchdog_(watchdog) {
  begin(std::move(edition));
}

// Connections that wait for an unchanged upstream go on waiting.
Term Terms::make(std::shared_ptr<const Edition> edition) {
  Term term{.edition = std::move(edition), .pools = {}};
  for (const auto& fleet : term.edition->fleets) {
    std::shared_ptr<upstream::Pool> pool;
    for (std::size_t at = 0; !terms_.empty() && at < terms_.front().pools.size(); ++at)
      if (terms_.front().edition->fleets[at] == fleet) pool = terms_.front().pools[at];
    term.pools.push_back(pool ? std::move(pool)
                              : std::make_shared<upstream::Pool>(executor_, watchdog_, *fleet));
  }
  return term;
}

void Terms::begin(std::shared_ptr<const Edition> edition) {
  terms_.push_front(make(std::move(edition)));
  if (terms_.size() == 1) return;
  auto& before = *std::next(terms_.begin());
  before.current = false;
  if (before.stays == 0) end(before);
}

void Terms::end(const Term& term) noexcept {
  terms_.remove_if([&](const Term& each) { return &each == &term; });
}

}  // namespace weir::proxy
