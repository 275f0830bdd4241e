#include "weir/config/differences.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_set>
#include <utility>

namespace weir::config {

namespace {

using Set = std::unordered_set<std::string>;
using List = std::vector<std::string>;

// Returns the label of a line: the text before ": ", or the whole line. Messages about the indented lines
// below a line begin with its label.
std::string_view label_of(std::string_view line) {
  return line.substr(0, line.find(": "));
}

// The lines of one description of a configuration.
struct Printed {
  List all_lines;                     // all lines, each once, with the label of the parent line
  Set known;                          // the lines in `all_lines`
  Set labels;                         // the labels of routes and rules
  List uses;                          // pairs of a route and a rule that applies to it: `route "a": rule "b"`
  Set used;                           // the pairs in `uses`
  std::map<std::string, List> order;  // for each parent's label, its lines whose order matters
};

void add(List& list, Set& known, std::string thing) {
  if (known.insert(thing).second) list.push_back(std::move(thing));
}

// Reads a description of a configuration line by line. A rule appears under each route to which it may apply,
// each time with the same lines.
class Reader {
 public:
  void read(std::string_view line, std::size_t depth) {
    while (!above_.empty() && above_.back().first >= depth) above_.pop_back();
    const std::string parent(above_.empty() ? std::string_view() : above_.back().second);
    const auto label = label_of(line);
    const bool is_rule = !parent.empty() && line.starts_with("rule ");
    const bool is_route = line.starts_with("route ");
    if (is_rule || is_route || line == "questions") printed_.labels.emplace(label);
    if (is_rule) add(printed_.uses, printed_.used, parent + ": " + std::string(label));
    std::string thing = parent.empty() || is_rule ? std::string(line) : parent + ": " + std::string(line);
    const bool decides = is_route || line.starts_with("override ");
    if (decides && !printed_.known.contains(thing)) printed_.order[parent].push_back(thing);
    add(printed_.all_lines, printed_.known, std::move(thing));
    above_.emplace_back(depth, label);
  }
  [[nodiscard]] Printed printed() && { return std::move(printed_); }

 private:
  Printed printed_;
  // Indentation and label of each parent of the current line.
  std::vector<std::pair<std::size_t, std::string_view>> above_;
};

Printed read(std::string_view text) {
  Reader reader;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto depth = line.find_first_not_of(' ');
    if (depth != std::string_view::npos) reader.read(line.substr(depth), depth);
  }
  return std::move(reader).printed();
}

void tell(std::string_view sign, const Printed& some, const Printed& others, List& told) {
  for (const auto& thing : some.all_lines)
    if (!others.known.contains(thing)) told.push_back(std::string(sign) + thing);
  for (const auto& use : some.uses) {
    const auto route = std::string(label_of(use));
    const bool both = others.labels.contains(route) && others.labels.contains(use.substr(route.size() + 2));
    if (both && !others.used.contains(use)) told.push_back(std::string(sign) + use);
  }
}

// Compares the order of the routes, and the order of each rule's overrides. Ignores routes and overrides that
// only one description has. Reports only the first difference in each order.
void tell_order(const Printed& before, const Printed& now, List& told) {
  for (const auto& [parent, lines] : now.order) {
    const auto found = before.order.find(parent);
    if (found == before.order.end()) continue;
    List old_order, new_order;
    std::copy_if(found->second.begin(), found->second.end(), std::back_inserter(old_order),
                 [&](const auto& thing) { return now.known.contains(thing); });
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(new_order),
                 [&](const auto& thing) { return before.known.contains(thing); });
    const auto [was, is] =
        std::mismatch(old_order.begin(), old_order.end(), new_order.begin(), new_order.end());
    if (was != old_order.end() && is != new_order.end())
      told.push_back("now in this order: " + *is + "; " + *was);
  }
}

}  // namespace

std::vector<std::string> differences(std::string_view before, std::string_view now) {
  const auto old_lines = read(before);
  const auto new_lines = read(now);
  std::vector<std::string> told;
  tell("no longer: ", old_lines, new_lines, told);
  tell("now: ", new_lines, old_lines, told);
  tell_order(old_lines, new_lines, told);
  return told;
}

}  // namespace weir::config
