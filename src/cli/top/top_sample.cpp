#include "cli/top/top_sample.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include <boost/json.hpp>

namespace weir::cli {

namespace {

namespace json = boost::json;

// Parses the labels of `name{label="value",…} value`, with \\, \" and \n in values.
Figures::Labels parse_labels(std::string_view& rest) {
  Figures::Labels labels;
  while (!rest.empty() && rest.front() != '}') {
    const auto equals = rest.find("=\"");
    if (equals == std::string_view::npos) return labels;
    const auto name = rest.substr(0, equals);
    rest.remove_prefix(equals + 2);
    std::string value;
    while (!rest.empty() && rest.front() != '"') {
      const bool escaped = rest.front() == '\\' && rest.size() > 1;
      if (escaped) rest.remove_prefix(1);
      value += escaped && rest.front() == 'n' ? '\n' : rest.front();
      rest.remove_prefix(1);
    }
    labels.emplace(name, std::move(value));
    rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
    if (!rest.empty() && rest.front() == ',') rest.remove_prefix(1);
  }
  rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
  return labels;
}

std::vector<TopClient> read_clients(const json::value& list) {
  std::vector<TopClient> clients;
  for (const auto& one : list.as_array())
    clients.push_back({json::value_to<std::string>(one.at("client")),
                       json::value_to<std::string>(one.at("digest")), one.at("cost").to_number<double>(),
                       one.at("error").to_number<double>()});
  return clients;
}

// Reads the name and the mode of a rule. Earlier versions of weir do not send the mode on each page.
TopRule read_rule(const json::value& entry, const char* name) {
  const auto* mode = entry.as_object().if_contains("mode");
  return {.rule = json::value_to<std::string>(entry.at(name)),
          .shadow = mode != nullptr && mode->as_string() == "shadow"};
}

// Calls `read` with each entry of the page's list `name`, and returns the results.
template <class Read>
std::vector<TopRule> read_list(std::string_view page, const char* name, Read read) {
  try {
    std::vector<TopRule> rules;
    const auto parsed = json::parse(json::string_view(page.data(), page.size()));
    for (const auto& entry : parsed.at(name).as_array()) rules.push_back(read(entry));
    return rules;
  } catch (const std::exception&) {
    throw std::runtime_error("its /api/" + std::string(name) + " is from another version of weir");
  }
}

}  // namespace

Figures::Figures(std::string_view page) {
  while (!page.empty()) {
    auto rest = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(rest.size() + 1, page.size()));
    const auto end = rest.find_first_of("{ ");
    if (rest.starts_with('#') || end == std::string_view::npos) continue;
    Series series{.name = std::string(rest.substr(0, end)), .labels = {}};
    const bool labelled = rest[end] == '{';
    rest.remove_prefix(end + 1);
    if (labelled) {
      series.labels = parse_labels(rest);
      rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
    }
    if (std::from_chars(rest.data(), rest.data() + rest.size(), series.value).ec != std::errc{}) continue;
    if (const auto rule = series.labels.find("rule"); rule != series.labels.end())
      by_rule_[rule->second].push_back(all_.size());
    all_.push_back(std::move(series));
  }
}

double Figures::sum(std::string_view name, const Labels& labels) const {
  double total = 0;
  const auto add = [&](const Series& series) {
    const bool all = series.name == name && std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
                       const auto found = series.labels.find(label.first);
                       return found != series.labels.end() && found->second == label.second;
                     });
    if (all) total += series.value;
  };
  if (const auto rule = labels.find("rule"); rule == labels.end())
    std::for_each(all_.begin(), all_.end(), add);
  else if (const auto of_rule = by_rule_.find(rule->second); of_rule != by_rule_.end())
    for (const auto at : of_rule->second) add(all_[at]);
  return total;
}

bool Figures::has(std::string_view name) const {
  return count(name) != 0;
}

std::size_t Figures::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(all_.begin(), all_.end(), [&](const Series& series) { return series.name == name; }));
}

double rate(const Sample& before, const Sample& now, std::string_view name, const Figures::Labels& labels) {
  const auto seconds = std::chrono::duration<double>(now.taken - before.taken).count();
  const auto more = now.figures.sum(name, labels) - before.figures.sum(name, labels);
  return seconds > 0 && more > 0 ? more / seconds : 0;
}

std::vector<TopRule> read_top(std::string_view page) {
  return read_list(page, "top", [](const json::value& entry) {
    auto rule = read_rule(entry, "rule");
    rule.seconds = entry.at("seconds").to_number<double>();
    rule.admitted = read_clients(entry.at("admitted"));
    rule.refused = read_clients(entry.at("refused"));
    return rule;
  });
}

std::vector<TopRule> read_rules(std::string_view page) {
  return read_list(page, "rules", [](const json::value& entry) { return read_rule(entry, "name"); });
}

}  // namespace weir::cli
