#include "admin/pages/top.hpp"

#include "weir/base/hex.hpp"
#include "weir/http/percent.hpp"
#include "weir/observe/json_value.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;
using observe::SpaceSaving;
using observe::TopOfRule;

constexpr std::size_t kShown = 10;  // number of clients in each list, unless the query sets it

struct TopQuery {
  std::optional<std::string> rule;
  std::size_t most = kShown;
};

std::optional<std::size_t> parse_count(std::string_view text) {
  std::size_t count = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), count);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return count >= 1 && count <= SpaceSaving::kMost ? std::optional(count) : std::nullopt;
}

// Returns the parameters of the query; nullopt if the query has an unknown parameter or a wrong value.
std::optional<TopQuery> read_top_query(std::string_view query) {
  TopQuery wanted;
  std::string scratch;
  while (!query.empty()) {
    const auto pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const auto equals = std::min(pair.find('='), pair.size());
    const auto name = pair.substr(0, equals);
    const auto value =
        http::percent_decoded(pair.substr(std::min(equals + 1, pair.size())), scratch, http::Plus::Blank);
    if (name == "rule")
      wanted.rule = std::string(value);
    else if (const auto count = parse_count(value); name == "n" && count)
      wanted.most = *count;
    else
      return std::nullopt;
  }
  return wanted;
}

json::array list_of(const SpaceSaving& summary, std::size_t most) {
  std::vector<const SpaceSaving::Counter*> all;
  for (const auto& counter : summary.counters()) all.push_back(&counter);
  const auto kept = std::min(most, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    [](const auto* a, const auto* b) { return a->count > b->count; });
  json::array list;
  for (std::size_t i = 0; i < kept; ++i)
    list.push_back({{"client", std::string_view(all[i]->text())},
                    {"digest", base::in_hex(all[i]->client)},
                    {"cost", all[i]->count},
                    {"error", all[i]->error}});
  return list;
}

json::object describe(const RuleText& rule, const std::optional<TopOfRule>& top, base::TimePoint now,
                      std::size_t most) {
  json::object entry{{"rule", rule.name}, {"mode", rule.mode}};
  if (!top) {
    for (const char* name : {"seconds", "capacity", "admitted_cost", "refused_cost"}) entry[name] = 0;
    entry["admitted"] = entry["refused"] = json::array();
    return entry;
  }
  entry["seconds"] = std::chrono::ceil<std::chrono::seconds>(now - top->since).count();
  entry["capacity"] = top->admitted.capacity();
  entry["admitted_cost"] = top->admitted.total();
  entry["refused_cost"] = top->refused.total();
  entry["admitted"] = list_of(top->admitted, most);
  entry["refused"] = list_of(top->refused, most);
  return entry;
}

}  // namespace

Answer show_top_clients(const Sources& sources, const PageRequest& question) {
  const auto wanted = read_top_query(query_of(question));
  if (!wanted)
    return error_answer(400, "bad_query",
                        "The parameters are rule=NAME and n=COUNT, with COUNT from 1 to " +
                            std::to_string(SpaceSaving::kMost) + ".");
  if (!sources.top)
    return error_answer(
        404, "top_is_off",
        "Top clients are not tracked; set [admin] top to the number of clients for each rule.");
  json::array list;
  for (std::size_t rule = 0; rule < sources.rules.size(); ++rule) {
    const auto& text = sources.rules[rule];
    if (wanted->rule && *wanted->rule != text.name) continue;
    const auto [top, now] = sources.top(text.index);
    list.push_back(describe(text, top, now, wanted->most));
  }
  if (wanted->rule && list.empty())
    return error_answer(404, "no_such_rule", "There is no such rule; /api/rules lists the names.");
  return {.status = 200, .body = observe::json_text(json::object{{"top", std::move(list)}})};
}

}  // namespace weir::admin
