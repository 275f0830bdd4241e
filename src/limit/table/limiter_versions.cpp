#include "limit/table/limiter_versions.hpp"

#include "weir/limit/rescale.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::limit {

std::optional<LimiterVersions::Relation> LimiterVersions::relation_to(RuleIndex cell,
                                                                      const Charge& charge) const {
  const std::shared_lock lock(mutex_);
  const auto& one = versions_[cell];
  const auto& other = versions_[charge.rule];
  if (!one || !other || one->rule.name != other->rule.name) return std::nullopt;
  if (one->forgotten) return Relation{};
  Relation relation{.cell_is_newer = one->age > other->age};
  if (const auto* variant = other->rule.variant_of(charge.limiter_id)) {
    relation.same_generation = one->generation_of(variant->name) == other->generation_of(variant->name);
    relation.of_cell = one->rule.limiter_named(variant->name);
  }
  return relation;
}

void LimiterVersions::define_rule(RuleIndex index, const SavedRule& rule) {
  const std::unique_lock lock(mutex_);
  Version known{.rule = rule, .generations = {}, .age = ++newest_age_};
  auto& latest = latest_[rule.name];
  for (const auto& variant : rule.variants) {
    auto& [limiter, generation] = latest[variant.name];
    const bool is_same_generation =
        limiter != nullptr && variant.limiter != nullptr && rescales(*limiter, *variant.limiter);
    if (!is_same_generation) generation = ++generations_begun_;
    limiter = variant.limiter;
    known.generations.push_back(generation);
  }
  put(index, std::move(known));
}

bool LimiterVersions::define_former_rule(RuleIndex index, const SavedRule& rule) {
  const std::unique_lock lock(mutex_);
  const auto latest = latest_.find(rule.name);
  if (latest == latest_.end()) return false;
  Version known{.rule = rule, .generations = {}, .age = 0};
  for (const auto& variant : rule.variants) {
    const auto found = latest->second.find(variant.name);
    const bool is_same_generation = found != latest->second.end() && found->second.limiter != nullptr &&
                                    variant.limiter != nullptr &&
                                    rescales(*variant.limiter, *found->second.limiter);
    known.generations.push_back(is_same_generation ? found->second.generation : ++generations_begun_);
  }
  if (generations_left(known) == 0) return false;
  put(index, std::move(known));
  return true;
}

void LimiterVersions::put(RuleIndex index, Version version) {
  versions_[index] = std::move(version);
  used_ = std::max<std::size_t>(used_, index + std::size_t{1});
}

bool LimiterVersions::is_current(RuleIndex index) const {
  const std::shared_lock lock(mutex_);
  const auto& known = versions_[index];
  return known && !known->forgotten && generations_left(*known) == known->generations.size();
}

void LimiterVersions::forget(RuleIndex index) {
  const std::unique_lock lock(mutex_);
  if (!versions_[index]) return;
  versions_[index]->forgotten = true;
  end_generations(versions_[index]->rule.name);
}

void LimiterVersions::retire(RuleIndex index) {
  const std::unique_lock lock(mutex_);
  if (!versions_[index]) return;
  const auto rule = std::move(versions_[index]->rule.name);
  versions_[index].reset();
  end_generations(rule);
}

std::vector<LimiterVersions::CellAction> LimiterVersions::cell_actions() const {
  const std::shared_lock lock(mutex_);
  std::vector<CellAction> cell_actions(kMaxRules);
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    if (!versions_[i]) continue;
    cell_actions[i].forgotten = versions_[i]->forgotten || generations_left(*versions_[i]) == 0;
    // A rule without a newest version no longer exists, so all its cells are evicted.
    const auto* newest = newest_of(versions_[i]->rule.name);
    if (newest != nullptr && newest != &versions_[i])
      link_versions(*versions_[i], **newest, static_cast<RuleIndex>(newest - versions_.data()),
                    cell_actions[i]);
  }
  return cell_actions;
}

QuotaAccounts LimiterVersions::accounts() const {
  const std::shared_lock lock(mutex_);
  std::map<std::string_view, std::size_t> newest;
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    if (!versions_[i] || versions_[i]->forgotten) continue;
    const auto [entry, is_first] = newest.try_emplace(versions_[i]->rule.name, i);
    if (!is_first && versions_[i]->age > versions_[entry->second]->age) entry->second = i;
  }
  QuotaAccounts accounts;
  accounts.of.resize(used_);
  for (std::size_t i = 0; i < used_; ++i) {
    const bool counts = versions_[i] && !versions_[i]->forgotten;
    accounts.of[i] = static_cast<RuleIndex>(counts ? newest.at(versions_[i]->rule.name) : i);
  }
  for (const auto& [name, index] : newest) {
    accounts.rules.set(index);
    accounts.logs.set(index, versions_[index]->rule.log_cost_bits() != 0);
  }
  return accounts;
}

const SavedRule* LimiterVersions::newest(const std::string& name, RuleIndex& index) const {
  const std::shared_lock lock(mutex_);
  const auto* newest = newest_of(name);
  if (newest == nullptr) return nullptr;
  index = static_cast<RuleIndex>(newest - versions_.data());
  return &(*newest)->rule;
}

LimiterVersions::Generation LimiterVersions::Version::generation_of(std::uint64_t variant) const noexcept {
  for (std::size_t i = 0; i < generations.size(); ++i)
    if (rule.variants[i].name == variant) return generations[i];
  return 0;
}

const std::optional<LimiterVersions::Version>* LimiterVersions::newest_of(const std::string& name) const {
  const std::optional<Version>* newest = nullptr;
  for (const auto& known : versions_)
    if (known && !known->forgotten && known->rule.name == name &&
        (newest == nullptr || known->age > (*newest)->age))
      newest = &known;
  return newest;
}

// Returns how many variants of the version `known` (the rule itself, its tiers and overrides) have kept their
// algorithm since `known` was defined. A change of algorithm starts a new generation.
std::size_t LimiterVersions::generations_left(const Version& known) const {
  const auto latest = latest_.find(known.rule.name);
  if (latest == latest_.end()) return 0;
  const auto is_left = [&](const SavedRule::Variant& variant) {
    const auto found = latest->second.find(variant.name);
    return found != latest->second.end() && found->second.generation == known.generation_of(variant.name);
  };
  const auto& variants = known.rule.variants;
  return static_cast<std::size_t>(std::count_if(variants.begin(), variants.end(), is_left));
}

// Ends the generations of a rule if it has no version left. If the rule is configured again, its keys then
// start fresh.
void LimiterVersions::end_generations(const std::string& rule) {
  if (newest_of(rule) == nullptr) latest_.erase(rule);
}

void LimiterVersions::link_versions(const Version& older, const Version& newer, RuleIndex index,
                                    CellAction& action) {
  if (action.forgotten || older.rule.variants.size() != 1) return;  // a cell does not tell its variant
  const auto& variant = older.rule.variants.front();
  action.next = index;
  action.from = variant.limiter;
  action.to = newer.rule.limiter_named(variant.name);
}

}  // namespace weir::limit
