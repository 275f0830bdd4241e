#include "weir/policy/bill.hpp"

namespace weir::policy {

std::optional<limit::Cost> Bill::merge(const ChargeSource& source, const limit::Key& key,
                                       limit::Cost cost) noexcept {
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    if (sources_[i].rule != source.rule || charges_[i].key != key) continue;
    const std::size_t count = sources_[i].applied.paired ? 2 : 1;
    for (auto at = i; at < i + count; ++at) {
      charges_[at].cost += cost;
      sources_[at].overdraft += source.overdraft;
      sources_[at].descriptors |= source.descriptors;
    }
    return charges_[i].cost + sources_[i].overdraft;
  }
  return std::nullopt;
}

void Bill::cut(std::size_t size) noexcept {
  while (charges_.size() > size) {
    charges_.pop_back();
    sources_.pop_back();
    outcomes_.pop_back();
  }
}

void Bill::remove(limit::ChargeSet charges) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    if ((charges >> i & 1U) != 0) continue;
    charges_[kept] = charges_[i];
    sources_[kept] = sources_[i];
    outcomes_[kept++] = outcomes_[i];
  }
  cut(kept);
}

ChargeRef charge_of(std::span<const Bill* const> bills, const Rule& rule) noexcept {
  ChargeRef first;
  for (const Bill* bill : bills)
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      if (bill->source(i).rule != &rule) continue;
      if (bill->source(i).descriptors == 0 || !bill->outcomes()[i].allowed) return {bill, i};
      if (first.bill == nullptr) first = {bill, i};
    }
  return first;
}

}  // namespace weir::policy
