// StreamCosts reads the costs that rules take from a streamed answer (event stream or JSON lines), record by
// record. It copies no body. Its memory counts in `max_body_memory`.
//
// Part of Settlements, which settles the charges by these costs.
#pragma once

#include "weir/http/event_stream.hpp"
#include "weir/policy/stream_cost.hpp"
#include "weir/proxy/body_memory.hpp"
#include "weir/proxy/worker.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace weir::proxy {

class StreamCosts {
 public:
  explicit StreamCosts(Worker& worker) noexcept : memory_(worker.body_memory, worker.counters) {}

  // Adds a rule that reads the stream. Elastic rules are charged twice, but added once.
  void add(const policy::Settlement& settlement, http::StreamFormat format);
  // Reads a piece of the stream. Returns false if there is no memory for the readers. The caller must then
  // clear() this object, and treat the reported cost as unreadable.
  [[nodiscard]] bool read(std::string_view piece);
  // Returns the cost that the stream has reported. Must be called at the end of the stream, for a settlement
  // that was added.
  [[nodiscard]] policy::ReportedCost cost(const policy::Settlement& settlement);
  void clear() noexcept {
    streams_.clear();
    (void)memory_.resize(0);
  }

 private:
  struct StreamOfRule {
    const policy::Settlement* settlement;
    policy::StreamCost cost;
    std::optional<policy::ReportedCost> reported{};  // set by the first call of cost()
  };
  [[nodiscard]] StreamOfRule* find(const policy::Settlement& settlement) noexcept;

  std::vector<StreamOfRule> streams_;
  BodyMemoryShare memory_;  // counts the memory of streams_
};

}  // namespace weir::proxy
