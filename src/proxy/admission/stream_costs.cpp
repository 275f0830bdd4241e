#include "proxy/admission/stream_costs.hpp"

#include <algorithm>
#include <cstddef>

namespace weir::proxy {

StreamCosts::StreamOfRule* StreamCosts::find(const policy::Settlement& settlement) noexcept {
  const auto found = std::find_if(streams_.begin(), streams_.end(),
                                  [&](const StreamOfRule& one) { return one.settlement == &settlement; });
  return found != streams_.end() ? &*found : nullptr;
}

void StreamCosts::add(const policy::Settlement& settlement, http::StreamFormat format) {
  if (find(settlement) == nullptr) streams_.push_back({&settlement, {settlement, format}});
}

// Counts the readers' memory only after they have read the piece. So a worker may exceed max_body_memory by
// the memory for one piece.
bool StreamCosts::read(std::string_view piece) {
  std::size_t memory = 0;
  for (auto& stream : streams_) {
    stream.cost.read(piece);
    memory += stream.cost.memory();
  }
  return memory_.resize(memory);
}

policy::ReportedCost StreamCosts::cost(const policy::Settlement& settlement) {
  auto& stream = *find(settlement);
  if (!stream.reported) stream.reported = stream.cost.finish();
  return *stream.reported;
}

}  // namespace weir::proxy
