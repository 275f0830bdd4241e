#include "weir/limit/shares.hpp"

#include "limit/table/shape.hpp"

namespace weir::limit {

Share share_of_each(std::size_t max_keys, std::size_t rules, std::size_t log_rules) noexcept {
  const Shape shape(max_keys);
  const std::size_t slots = shape.shards * shape.shard_slots();
  return {.keys = rules < 2 ? slots : shape.shards * shape.split_of_slots(rules).part,
          .log_entries =
              LogStore::kEntries * (log_rules < 2 ? shape.chunks : shape.split_of_chunks(log_rules).part)};
}

}  // namespace weir::limit
