#include "weir/policy/bill.hpp"

namespace weir::policy {

bool Bill::add(const RuleLine& line, const limit::Charge& charge) {
  if (charges_.size() == limit::kMaxCharges) return false;
  charges_.push_back(charge);
  lines_.push_back(line);
  outcomes_.emplace_back();
  return true;
}

std::optional<limit::Cost> Bill::merge(const RuleLine& line, const limit::Key& key,
                                       limit::Cost cost) noexcept {
  for (std::size_t i = 0; i < charges_.size(); ++i) {
    if (lines_[i].rule != line.rule || charges_[i].key != key) continue;
    const std::size_t count = lines_[i].applied.paired ? 2 : 1;
    for (auto at = i; at < i + count; ++at) {
      charges_[at].cost += cost;
      lines_[at].descriptors |= line.descriptors;
    }
    return charges_[i].cost;
  }
  return std::nullopt;
}

void Bill::clear() noexcept {
  charges_.clear();
  lines_.clear();
  outcomes_.clear();
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

}  // namespace weir::policy
