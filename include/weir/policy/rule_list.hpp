// A list of the rules that weir tests for one request: all rules of a configuration, or some of them.
#pragma once

#include "weir/policy/rule.hpp"

#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

namespace weir::policy {

// A view of rules in the order of the configuration. The view refers to an array of rules, or to an array of
// pointers to rules. The array must outlive the view.
class RuleList {
 public:
  class Iterator {
   public:
    using value_type = Rule;
    using difference_type = std::ptrdiff_t;
    using reference = const Rule&;
    using pointer = const Rule*;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    explicit Iterator(const Rule* at) noexcept : rule_(at) {}
    explicit Iterator(const Rule* const* at) noexcept : pointer_(at) {}
    [[nodiscard]] const Rule& operator*() const noexcept { return pointer_ != nullptr ? **pointer_ : *rule_; }
    [[nodiscard]] const Rule* operator->() const noexcept { return &**this; }
    Iterator& operator++() noexcept {
      if (pointer_ != nullptr)
        ++pointer_;
      else
        ++rule_;
      return *this;
    }
    Iterator operator++(int) noexcept {
      const auto before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Rule* rule_ = nullptr;  // the position in an array of rules
    // the position in an array of pointers; null: the list is an array of rules
    const Rule* const* pointer_ = nullptr;
  };

  RuleList() = default;
  // Converts any array of rules to a list.
  RuleList(std::span<const Rule> rules) noexcept  // NOLINT(google-explicit-constructor)
      : begin_(rules.data()), end_(rules.data() + rules.size()) {}
  RuleList(const std::vector<Rule>& rules) noexcept  // NOLINT(google-explicit-constructor)
      : RuleList(std::span(rules)) {}
  explicit RuleList(std::span<const Rule* const> pointers) noexcept
      : begin_(pointers.data()), end_(pointers.data() + pointers.size()) {}

  [[nodiscard]] Iterator begin() const noexcept { return begin_; }
  [[nodiscard]] Iterator end() const noexcept { return end_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }

 private:
  Iterator begin_, end_;
};

}  // namespace weir::policy
