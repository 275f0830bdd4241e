// Reads costs in bytes: `cost = { bytes = "response", per = "1KiB" }`.
#include "config/read/settings_sections.hpp"

namespace weir::config {

namespace {

constexpr std::uint64_t kMostPer = std::uint64_t{1} << 40;  // 1 TiB

void read_unit(const TableReader& cost, policy::Settlement& settlement) {
  settlement.per = cost.size("per").value_or(settlement.per);
  if (settlement.per >= 1 && settlement.per <= kMostPer) return;
  cost.mistake("per", "found " + std::to_string(settlement.per) + " bytes; expected 1 byte to 1024GiB");
  settlement.per = 1;
}

void read_fixed_reserve(const TableReader& cost, policy::Rule& into) {
  const auto* node = cost.node("reserve");
  if (node == nullptr || node->table() == nullptr) return read_reserve(cost, into);
  cost.mistake("reserve",
               "found a table beside bytes; expected a whole number, or no reserve: a request then reserves "
               "its Content-Length");
}

}  // namespace

bool is_cost_in_bytes(const TableReader& cost) {
  return cost.mentions("bytes") || cost.mentions("per");
}

void read_cost_in_bytes(const TableReader& cost, policy::Rule& into) {
  for (const auto key : {"header", "query", "json", "response_header", "response_json", "stream", "max_body",
                         "default", "scale"})
    if (cost.mentions(key)) cost.mistake(key, "found beside bytes; expected only per and reserve beside it");
  if (!cost.has("bytes")) {
    if (!cost.flawed()) cost.missing("bytes", "bytes = \"response\", \"request\" or \"both\"");
    return;
  }
  if (!into.settlement) into.settlement.emplace();
  auto& settlement = *into.settlement;
  settlement.kind = policy::Settlement::Kind::Bytes;
  settlement.bodies = cost.choice<policy::Bodies>("bytes");
  read_unit(cost, settlement);
  if (cost.mentions("reserve")) return read_fixed_reserve(cost, into);
  if (settlement.bodies == policy::Bodies::Response) return;
  into.cost_from.kind = policy::CostSource::Kind::Length;
  into.cost_from.per = settlement.per;
}

}  // namespace weir::config
