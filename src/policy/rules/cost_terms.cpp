#include "policy/rules/cost_terms.hpp"

#include "weir/policy/cost.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

__extension__ using Product = unsigned __int128;

// Returns true if a rule with this `scale` accepts the number. A rule for whole numbers also accepts 5.0.
bool is_taken(std::string_view digits, std::uint32_t scale) noexcept {
  const auto point = std::min(digits.find('.'), digits.size());
  return scale != 0 || digits.find_first_not_of("0.", point) == std::string_view::npos;
}

// Returns the weight without needless zeros: "4", "0.15".
std::string weight_text(std::uint64_t weight) {
  auto text = std::to_string(weight / CostTerm::kOne);
  if (weight % CostTerm::kOne == 0) return text;
  auto places = std::to_string(CostTerm::kOne + weight % CostTerm::kOne).substr(1);
  places.erase(places.find_last_not_of('0') + 1);
  return text + "." + places;
}

}  // namespace

ReportedCost read_amount(std::string_view digits, std::uint32_t scale) {
  if (!is_taken(digits, scale)) return {ReportedCost::State::Unreadable, 0};
  if (digits.find_first_not_of("0.") == std::string_view::npos) return {ReportedCost::State::Amount, 0};
  auto zeros = digits.find_first_not_of('0');
  if (digits[zeros] == '.') --zeros;
  const auto cost = parse_cost(digits.substr(zeros), scale);
  return {ReportedCost::State::Amount, cost.value_or(limit::kMaxCost)};
}

std::vector<std::string> pointers_of(std::span<const CostTerm> terms) {
  std::vector<std::string> pointers;
  for (const auto& term : terms) pointers.insert(pointers.end(), term.pointers.begin(), term.pointers.end());
  return pointers;
}

bool is_present(const JsonNumber& number) noexcept {
  return number.found == JsonNumber::Found::Number || number.found == JsonNumber::Found::Faulty;
}

ReportedCost sum_of_terms(std::span<const CostTerm> terms, std::uint32_t scale,
                          std::span<const JsonNumber> numbers) {
  ReportedCost cost;
  Product sum = 0;
  for (const auto& term : terms) {
    const auto those = numbers.first(term.pointers.size());
    numbers = numbers.subspan(term.pointers.size());
    const auto found = std::find_if(those.begin(), those.end(), is_present);
    if (found == those.end()) continue;
    if (found->found == JsonNumber::Found::Faulty) return {ReportedCost::State::Unreadable};
    const auto amount = read_amount(found->digits, scale);
    if (amount.state != ReportedCost::State::Amount) return amount;
    cost.state = ReportedCost::State::Amount;
    sum += Product{amount.amount} * term.weight;
  }
  sum = (sum + CostTerm::kOne - 1) / CostTerm::kOne;
  cost.amount = sum > limit::kMaxCost ? limit::kMaxCost : static_cast<limit::Cost>(sum);
  return cost;
}

std::string describe_terms(std::span<const CostTerm> terms) {
  std::string words;
  for (const auto& term : terms) {
    if (!words.empty()) words += " + ";
    if (term.weight != CostTerm::kOne) words += weight_text(term.weight) + " x ";
    for (const auto& pointer : term.pointers)
      words += (&pointer == &term.pointers.front() ? "" : "|") + pointer;
  }
  return words;
}

}  // namespace weir::policy
