#include "weir/policy/bill.hpp"

namespace weir::policy {

std::optional<limit::Cost> Bill::merge(const RuleLine& line, const limit::Key& key,
                                       limit::Cost cost) noexcept {
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    if (lines_[i].rule != line.rule || charges_[i].key != key) continue;
    const std::size_t count = lines_[i].applied.paired ? 2 : 1;
    for (auto at = i; at < i + count; ++at) {
      charges_[at].cost += cost;
      lines_[at].overdraft += line.overdraft;
      lines_[at].descriptors |= line.descriptors;
    }
    return charges_[i].cost + lines_[i].overdraft;
  }
  return std::nullopt;
}

void Bill::cut(std::size_t size) noexcept {
  while (charges_.size() > size) {
    charges_.pop_back();
    lines_.pop_back();
    outcomes_.pop_back();
  }
}

void Bill::remove(limit::LineSet lines) noexcept {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    if ((lines >> i & 1U) != 0) continue;
    charges_[kept] = charges_[i];
    lines_[kept] = lines_[i];
    outcomes_[kept++] = outcomes_[i];
  }
  cut(kept);
}

BillLineRef line_of(std::span<const Bill* const> bills, const Rule& rule) noexcept {
  BillLineRef first;
  for (const Bill* bill : bills)
    for (std::size_t i = 0; i < bill->charges().size(); ++i) {
      if (bill->line(i).rule != &rule) continue;
      if (bill->line(i).descriptors == 0 || !bill->outcomes()[i].allowed) return {bill, i};
      if (first.bill == nullptr) first = {bill, i};
    }
  return first;
}

}  // namespace weir::policy
