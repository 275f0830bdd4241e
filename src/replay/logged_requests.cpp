#include "replay/logged_requests.hpp"

#include "replay/beyond.hpp"

#include "weir/http/target.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/redaction.hpp"

#include <algorithm>
#include <utility>

namespace weir::replay {

namespace {

// Stands for a token that weir did not verify. The text contains no claims, so the replay leaves out the
// rules that need claims of the token, as weir did.
constexpr std::string_view kUnverified = "?";

// Sets the head's path and query from the request target (RFC 9112 §3.2). The target is valid, because weir
// checked the target of the real request.
void split_target(http::RequestHead& head, std::string_view rest) {
  if (const auto scheme = rest.find("://"); !rest.starts_with('/') && scheme != std::string_view::npos) {
    rest.remove_prefix(scheme + 3);
    rest.remove_prefix(std::min(rest.find_first_of("/?"), rest.size()));
  }
  const auto question = std::min(rest.find('?'), rest.size());
  const bool of_all =
      rest.empty() &&
      head.method == "OPTIONS";  // an OPTIONS request without a path had the target "*" (RFC 9112 §3.2.4)
  head.path = of_all          ? std::string_view("*")
              : question == 0 ? std::string_view("/")
                              : rest.substr(0, question);
  head.query = rest.substr(std::min(question + 1, rest.size()));
}

}  // namespace

const LoggedRule* logged_rule(const LogLine& line, const policy::Rule& rule, std::size_t nth) noexcept {
  for (const auto& logged : line.rules)
    if (logged.rule == rule.name && nth-- == 0) return &logged;
  return nullptr;
}

LoggedRequests::LoggedRequests(const Candidate& candidate)
    : candidate_(candidate), facts_(candidate.rules.size()), finder_(candidate.rules) {
  for (const auto& rule : candidate.rules) {
    auto& fact = facts_[rule.index];
    fact.beyond = beyond_log(rule);
    fact.parameters = asked_parameters(rule);
    fact.descriptors = compared_descriptors(rule);
    if (!fact.beyond.empty())
      logged_rules_.push_back(&rule);
    else if (fact.beyond = asked_of_questions(rule); !fact.beyond.empty())
      question_rules_.push_back(&rule);
  }
  for (const auto& route : candidate.routes) {
    uses_logged_routes = uses_logged_routes || !beyond_log(route.match).empty();
    for (auto& name : asked_parameters(route.match)) route_parameters_.push_back(std::move(name));
  }
}

// Takes the values of a question from the line, if the line is a question. A log with a
// question has domains and descriptors, so lacks() no longer reports them as missing.
void LoggedRequests::take_question(const LogLine& line) {
  has_question_ = line.is_question;
  if (!has_question_) return;
  for (const auto* rule : question_rules_) facts_[rule->index].beyond.clear();
  request_.domain = line.question.domain;
  request_.descriptors = line.question.descriptors;
  request_.stated_cost = line.question.cost;
}

// Finds the rules that need a value that this line hides: a query parameter, or a value of a question that
// the rule compares. From this line on, the replay uses the logged decisions of these rules.
void LoggedRequests::find_hidden(const LogLine& line) {
  const auto& hidden = line.question.hidden;
  if (head_.query.find(policy::kHiddenValue) == std::string_view::npos && hidden.empty()) return;
  const auto in_query = [&](const std::string& name) { return policy::hides_value(head_.query, name); };
  uses_logged_routes =
      uses_logged_routes || std::any_of(route_parameters_.begin(), route_parameters_.end(), in_query);
  for (const auto& rule : candidate_.rules) {
    auto& fact = facts_[rule.index];
    if (!fact.beyond.empty()) continue;
    const auto parameter = std::find_if(fact.parameters.begin(), fact.parameters.end(), in_query);
    const auto value =
        std::find_first_of(fact.descriptors.begin(), fact.descriptors.end(), hidden.begin(), hidden.end());
    if (parameter != fact.parameters.end())
      fact.beyond = "the parameter " + *parameter;
    else if (value != fact.descriptors.end())
      fact.beyond = "the value of the descriptor " + *value;
    else
      continue;
    logged_rules_.push_back(&rule);
    std::erase(question_rules_, &rule);
  }
}

policy::RuleList LoggedRequests::find_rules() {
  const auto rules = finder_.find(candidate_.rules, request_, found_);
  if (logged_rules_.empty() && (has_question_ || question_rules_.empty())) return rules;
  const auto& waiting = question_rules_;
  std::vector<const policy::Rule*> plain;
  for (const auto& rule : rules) {
    const bool waits = !has_question_ && std::find(waiting.begin(), waiting.end(), &rule) != waiting.end();
    if (!waits && facts_[rule.index].beyond.empty()) plain.push_back(&rule);
  }
  found_.rules = std::move(plain);
  return policy::RuleList(std::span<const policy::Rule* const>(found_.rules));
}

void LoggedRequests::take_route_named(std::string_view name) {
  request_.route = name;
  const auto& routes = candidate_.routes;
  const auto found =
      std::find_if(routes.begin(), routes.end(), [&](const auto& route) { return route.name == name; });
  if (found != routes.end())
    policy::take_route(routes, static_cast<std::size_t>(found - routes.begin()), request_);
}

// Takes the factors of rules with `adapt` (which scales their limits) from the line. A rule that the line
// does not mention gets its whole limit.
void LoggedRequests::take_factors(const LogLine& line) {
  for (const auto& rule : candidate_.rules) {
    if (!rule.adapt) continue;
    const auto* logged = logged_rule(line, rule);
    factors_.set(rule.index, logged != nullptr ? logged->factor : limit::kWholeFactor);
    has_factors = has_factors || (logged != nullptr && logged->factor != limit::kWholeFactor);
  }
}

void LoggedRequests::read(const LogLine& line) {
  head_.clear();
  head_.method = line.method;
  head_.target = line.target;
  head_.authority = line.host;
  split_target(head_, line.target);
  request_ = {.head = &head_,
              .path = http::normalise_path(head_.path, path_),
              .host = http::normalise_host(head_.authority, host_),
              .route = {},
              .client = {},
              .now = line.start,
              .load = line.load.value_or(1),
              .factors = &factors_};
  take_question(line);
  find_hidden(line);
  auto& client = request_.client;
  client.peer = client.address = line.client;
  client.network = policy::network_of(candidate_.client, line.client);
  client.api_key = line.api_key;
  client.user = line.user;
  client.org = line.org;
  client.service = line.service;
  client.device = line.device;
  client.tier = line.tier;
  client.country = line.country;
  client.source = &candidate_.client;
  if (line.unverified) client.token = kUnverified;
  if (uses_logged_routes)
    take_route_named(line.route);
  else if (const auto route = policy::find_route(candidate_.routes, request_))
    policy::take_route(candidate_.routes, *route, request_);
  has_load = has_load || line.load;
  take_factors(line);
  const std::string_view logged[] = {line.api_key, line.user, line.org,    line.service,
                                     line.device,  line.tier, line.country};
  for (std::size_t i = 0; i < has_attribute.size(); ++i)
    has_attribute[i] = has_attribute[i] || !logged[i].empty();
}

}  // namespace weir::replay
