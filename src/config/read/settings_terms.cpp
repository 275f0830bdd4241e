// Reads costs that are the sum of numbers in a JSON body. Also reads `reserve`: what weir charges until the
// response reports the cost. A reserve is a constant, or comes from numbers in the request's body.
#include "config/read/settings_sections.hpp"

#include "weir/policy/cost.hpp"

#include <cmath>

namespace weir::config {

namespace {

using policy::CostTerm;

constexpr std::size_t kMostPointers = 32;
constexpr std::int64_t kMostWeight = 1'000'000;

bool is_pointer_text(std::string_view text) noexcept {
  for (std::size_t at = text.find('~'); at != std::string_view::npos; at = text.find('~', at + 1))
    if (at + 1 == text.size() || (text[at + 1] != '0' && text[at + 1] != '1')) return false;
  return text.starts_with('/');
}

// Returns the weight in millionths; nullopt if it is not above 0, too large, or has more than six decimals.
std::optional<std::uint64_t> parse_weight(const Node& node) noexcept {
  if (const auto* whole = std::get_if<std::int64_t>(&node.value))
    return *whole >= 1 && *whole <= kMostWeight
               ? std::optional(static_cast<std::uint64_t>(*whole) * CostTerm::kOne)
               : std::nullopt;
  const auto* fraction = std::get_if<Fraction>(&node.value);
  if (fraction == nullptr || !(fraction->value > 0 && fraction->value <= static_cast<double>(kMostWeight)))
    return std::nullopt;
  constexpr double kRoundingError = 0.01;
  const double millionths = fraction->value * static_cast<double>(CostTerm::kOne);
  const double rounded = std::round(millionths);
  if (rounded < 1 || std::abs(millionths - rounded) > kRoundingError) return std::nullopt;
  return static_cast<std::uint64_t>(rounded);
}

// Reads the value of one key that holds JSON pointers.
class TermsReader {
 public:
  TermsReader(const TableReader& table, std::string_view key, std::string_view sample)
      : table_(table), key_(key), sample_(in_quotes(sample)) {}

  std::vector<CostTerm> read() {
    const auto* node = table_.node(key_);
    if (node == nullptr) return {};
    if (const auto* text = node->text())
      add_pointers(*text, node->line, CostTerm::kOne);
    else if (const auto* list = node->array())
      read_list(*list);
    else if (const auto* weights = node->table())
      read_weights(*weights);
    else
      mistake_at(node->line, "found " + std::string(type_name(*node)), kForms);
    if (pointers_ > kMostPointers)
      table_.mistake(key_, "found " + std::to_string(pointers_) + " pointers; expected at most " +
                               std::to_string(kMostPointers));
    return std::move(terms_);
  }

 private:
  void read_list(const Array& list) {
    for (const auto& each : list) {
      if (const auto* text = each.text())
        add_pointers(*text, each.line, CostTerm::kOne);
      else
        mistake_at(each.line, "found a list with " + std::string(type_name(each)) + " in it", kForms);
    }
    if (list.empty()) table_.mistake(key_, "found none; expected a JSON pointer such as " + sample_);
  }
  void read_weights(const Table& weights) {
    for (const auto& entry : weights.entries) {
      const auto weight = parse_weight(entry);
      add_pointers(entry.key, entry.line, weight.value_or(CostTerm::kOne));
      if (!weight)
        table_.mistake_at(entry.line, path(),
                          "the weight of " + in_quotes(entry.key) +
                              " is not a number that weir can use; expected a number above 0, at most " +
                              std::to_string(kMostWeight) + ", with at most six decimal places");
    }
    if (weights.entries.empty())
      table_.mistake(key_, "found none; expected pointers with weights, such as { " + sample_ + " = 1 }");
  }
  // Adds one term. `text`: JSON pointers, separated by "|". The first pointer that has a value in the body
  // counts.
  void add_pointers(std::string_view text, int line, std::uint64_t weight) {
    CostTerm term{.weight = weight};
    for (std::size_t at = 0; at <= text.size();) {
      const auto end = std::min(text.find('|', at), text.size());
      term.pointers.emplace_back(text.substr(at, end - at));
      if (!is_pointer_text(term.pointers.back())) {
        mistake_at(line, "found " + in_quotes(text));
        break;
      }
      at = end + 1;
    }
    pointers_ += term.pointers.size();
    terms_.push_back(std::move(term));
  }
  [[nodiscard]] std::string path() const { return table_.path() + "." + std::string(key_); }
  void mistake_at(int line, const std::string& found, std::string_view more = {}) const {
    table_.mistake_at(line, path(),
                      found + "; expected a JSON pointer such as " + sample_ + std::string(more));
  }
  static constexpr std::string_view kForms = ", a list of pointers, or a table of pointers with weights";

  const TableReader& table_;
  const std::string_view key_;
  const std::string sample_;
  std::size_t pointers_ = 0;
  std::vector<CostTerm> terms_;
};

}  // namespace

std::vector<CostTerm> read_terms(const TableReader& table, std::string_view key, std::string_view sample) {
  return TermsReader(table, key, sample).read();
}

void read_reserve(const TableReader& cost, policy::Rule& into) {
  const auto* node = cost.node("reserve");
  if (node == nullptr) {
    if (!cost.flawed())
      cost.missing("reserve", "a whole number: the charge until the response reports the cost");
    return;
  }
  if (node->table() == nullptr) {
    const auto* whole = std::get_if<std::int64_t>(&node->value);
    const bool fits = whole != nullptr && *whole >= 1 && *whole <= static_cast<std::int64_t>(limit::kMaxCost);
    if (fits)
      into.cost = static_cast<limit::Cost>(*whole);
    else
      cost.mistake("reserve",
                   "found " + (whole != nullptr ? std::to_string(*whole) : std::string(type_name(*node))) +
                       "; expected a whole number from 1 to " + std::to_string(limit::kMaxCost) +
                       (whole != nullptr ? "" : ", or { json = \"/max_tokens\", default = n, most = n }"));
    return;
  }
  const TableReader table(node, node->line, cost.path() + ".reserve", schema::kReserve, cost.source_file());
  auto& source = into.cost_from;
  source.kind = policy::CostSource::Kind::Reserve;
  source.terms = read_terms(table, "json", "/max_tokens");
  into.cost = static_cast<limit::Cost>(table.whole("default"));
  if (table.has("most")) source.most = static_cast<limit::Cost>(table.whole("most"));
  if (into.cost > source.most)
    table.mistake("default", "found " + std::to_string(into.cost) + ", which is above most, " +
                                 std::to_string(source.most) + "; expected at most that");
}

}  // namespace weir::config
