#include "limit/table/readings.hpp"

#include "weir/limit/rescale.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace weir::limit {

std::optional<Readings::Meeting> Readings::meeting(RuleIndex cell, const Charge& charge) const {
  const std::shared_lock lock(mutex_);
  const auto& one = known_[cell];
  const auto& other = known_[charge.rule];
  if (!one || !other || one->rule.name != other->rule.name) return std::nullopt;
  if (one->forgotten) return Meeting{};
  Meeting meeting{.cell_is_newer = one->age > other->age};
  if (const auto* variant = other->rule.variant_of(charge.ledger)) {
    meeting.one_life = one->life_of(variant->name) == other->life_of(variant->name);
    meeting.of_cell = one->rule.limiter_named(variant->name);
  }
  return meeting;
}

void Readings::introduce(RuleIndex index, const SavedRule& rule) {
  const std::unique_lock lock(mutex_);
  Known known{.rule = rule, .lives = {}, .age = ++introduced_};
  auto& latest = latest_[rule.name];
  for (const auto& variant : rule.variants) {
    auto& [limiter, life] = latest[variant.name];
    const bool lives_on =
        limiter != nullptr && variant.limiter != nullptr && rescales(*limiter, *variant.limiter);
    if (!lives_on) life = ++lives_begun_;
    limiter = variant.limiter;
    known.lives.push_back(life);
  }
  known_[index] = std::move(known);
}

bool Readings::introduce_former(RuleIndex index, const SavedRule& rule) {
  const std::unique_lock lock(mutex_);
  const auto latest = latest_.find(rule.name);
  if (latest == latest_.end()) return false;
  Known known{.rule = rule, .lives = {}, .age = 0};
  for (const auto& variant : rule.variants) {
    const auto found = latest->second.find(variant.name);
    const bool lives_on = found != latest->second.end() && found->second.limiter != nullptr &&
                          variant.limiter != nullptr && rescales(*variant.limiter, *found->second.limiter);
    known.lives.push_back(lives_on ? found->second.life : ++lives_begun_);
  }
  if (lives_left(known) == 0) return false;
  known_[index] = std::move(known);
  return true;
}

bool Readings::goes_on(RuleIndex index) const {
  const std::shared_lock lock(mutex_);
  const auto& known = known_[index];
  return known && !known->forgotten && lives_left(*known) == known->lives.size();
}

void Readings::forget(RuleIndex index) {
  const std::unique_lock lock(mutex_);
  if (!known_[index]) return;
  known_[index]->forgotten = true;
  end_lives(known_[index]->rule.name);
}

void Readings::retire(RuleIndex index) {
  const std::unique_lock lock(mutex_);
  if (!known_[index]) return;
  const auto rule = std::move(known_[index]->rule.name);
  known_[index].reset();
  end_lives(rule);
}

std::array<Readings::Fate, kMaxRules> Readings::fates() const {
  const std::shared_lock lock(mutex_);
  std::array<Fate, kMaxRules> fates{};
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    if (!known_[i]) continue;
    fates[i].forgotten = known_[i]->forgotten || lives_left(*known_[i]) == 0;
    const auto* newest = newest_of(known_[i]->rule.name);  // null: all its cells are to be evicted
    if (newest != nullptr && newest != &known_[i])
      lead_on(*known_[i], **newest, static_cast<RuleIndex>(newest - known_.data()), fates[i]);
  }
  return fates;
}

Accounts Readings::accounts() const {
  const std::shared_lock lock(mutex_);
  std::map<std::string_view, std::size_t> newest;
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    if (!known_[i] || known_[i]->forgotten) continue;
    const auto [entry, is_first] = newest.try_emplace(known_[i]->rule.name, i);
    if (!is_first && known_[i]->age > known_[entry->second]->age) entry->second = i;
  }
  Accounts accounts;
  for (std::size_t i = 0; i < kMaxRules; ++i) {
    const bool counts = known_[i] && !known_[i]->forgotten;
    accounts.of[i] = static_cast<std::uint8_t>(counts ? newest.at(known_[i]->rule.name) : i);
  }
  for (const auto& [name, index] : newest) {
    accounts.rules.set(index);
    accounts.logs.set(index, known_[index]->rule.log_cost_bits() != 0);
  }
  return accounts;
}

const SavedRule* Readings::newest(const std::string& name, RuleIndex& index) const {
  const std::shared_lock lock(mutex_);
  const auto* newest = newest_of(name);
  if (newest == nullptr) return nullptr;
  index = static_cast<RuleIndex>(newest - known_.data());
  return &(*newest)->rule;
}

Readings::Life Readings::Known::life_of(std::uint64_t variant) const noexcept {
  for (std::size_t i = 0; i < lives.size(); ++i)
    if (rule.variants[i].name == variant) return lives[i];
  return 0;
}

const std::optional<Readings::Known>* Readings::newest_of(const std::string& name) const {
  const std::optional<Known>* newest = nullptr;
  for (const auto& known : known_)
    if (known && !known->forgotten && known->rule.name == name &&
        (newest == nullptr || known->age > (*newest)->age))
      newest = &known;
  return newest;
}

// Returns how many variants of `known` are in the latest generation.
std::size_t Readings::lives_left(const Known& known) const {
  const auto latest = latest_.find(known.rule.name);
  if (latest == latest_.end()) return 0;
  const auto is_left = [&](const SavedRule::Variant& variant) {
    const auto found = latest->second.find(variant.name);
    return found != latest->second.end() && found->second.life == known.life_of(variant.name);
  };
  const auto& variants = known.rule.variants;
  return static_cast<std::size_t>(std::count_if(variants.begin(), variants.end(), is_left));
}

// Ends the generations of a rule that is gone. If the rule returns, it starts anew.
void Readings::end_lives(const std::string& rule) {
  if (newest_of(rule) == nullptr) latest_.erase(rule);
}

void Readings::lead_on(const Known& older, const Known& newer, RuleIndex index, Fate& fate) {
  if (fate.forgotten || older.rule.variants.size() != 1) return;  // a cell does not name its variant
  const auto& variant = older.rule.variants.front();
  fate.next = index;
  fate.from = variant.limiter;
  fate.to = newer.rule.limiter_named(variant.name);
}

}  // namespace weir::limit
