#include "weir/proxy/explainer.hpp"

#include "proxy/admission/rate_limit_headers.hpp"
#include "proxy/exchange/pre_check.hpp"

#include "weir/base/hex.hpp"
#include "weir/base/units.hpp"
#include "weir/http/answer.hpp"
#include "weir/policy/claims.hpp"
#include "weir/policy/priority.hpp"
#include "weir/redis/clock_ahead.hpp"

#include <algorithm>
#include <array>

namespace weir::proxy {

namespace {

// Splits header lines into names and values, and appends them to `headers`.
void add_fields(std::vector<std::pair<std::string, std::string>>& headers, std::string_view lines) {
  while (!lines.empty()) {
    const auto line = lines.substr(0, lines.find("\r\n"));
    const auto colon = line.find(':');
    if (colon != std::string_view::npos && colon + 2 <= line.size())
      headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
    lines.remove_prefix(std::min(line.size() + 2, lines.size()));
  }
}

// Returns true if a rule in shadow mode would refuse the request.
bool shadow_refuses(std::span<const policy::Bill* const> bills) {
  for (const auto* bill : bills)
    for (std::size_t i = 0; i < bill->charges().size(); ++i)
      if (!bill->charges()[i].enforced && !bill->source(i).applied.counted && !bill->outcomes()[i].allowed)
        return true;
  return false;
}

}  // namespace

Explainer::Explainer(const Configuration& config, const limit::KeyTable& table, SharedQueue& queue,
                     const policy::ExplainRequest& explain_request, const policy::ExplainTime& time,
                     double load)
    : config_(config), table_(table), queue_(queue), time_(time), now_(time.limits) {
  read(explain_request, load);
  if (!decided_early_) find_route();
  if (!decided_early_) evaluate_rules();
}

void Explainer::read(const policy::ExplainRequest& asked, double load) {
  auto explain_request = asked;
  is_question_ = asked.question.has_value();
  if (auto host = policy::host_for_route(asked, config_.routes, config_.client, time_, load)) {
    explanation_.route.assumed_host = *host;
    explain_request.host = std::move(host);
  }
  explanation_.client.address = explanation_.client.peer = explain_request.peer.to_string();
  if (const auto fault = described_.read(explain_request, config_.client, time_, load))
    return reject_early(fault->status, fault->what);
  described_.request().factors = config_.factors;
  explanation_.client = policy::explain_client(described_.request().client);
  if (described_.head_size() > config_.server.max_head) reject_early(431, "the request head is too large");
}

void Explainer::find_route() {
  auto& request = described_.request();
  const auto at = policy::choose_route(config_.routes, request);
  for (std::size_t i = 0; i < at.value_or(config_.routes.size()); ++i)
    explanation_.route.others.emplace_back(config_.routes[i].name, config_.routes[i].match.why_not(request));
  route_ = at ? &config_.routes[*at] : nullptr;
  if (route_ != nullptr) explanation_.route.name = route_->name;
  if (route_ != nullptr)
    explanation_.route.target = route_->respond ? "answers " + std::to_string(route_->respond->status)
                                                : "upstream " + config_.upstreams[route_->upstream].name;
  explanation_.route.priority = policy::priority_of(request, route_, config_.tier_priorities);
  const auto most = route_ != nullptr && route_->max_body != 0 ? route_->max_body : config_.server.max_body;
  const auto pre_check = run_pre_check(request, route_, described_.head_size(), most);
  if (pre_check == PreCheck::None) return explain_uncharged();
  if (pre_check == PreCheck::Excess) return reject_early(400, policy::describe(request.head->excess()));
  const auto reply = answer_to(pre_check, request);
  reject_early(reply.status, reply.what);
}

// Describes a request that weir checks against no rule: a CORS preflight, or a request for the client's own
// limits.
void Explainer::explain_uncharged() {
  if (is_question_) return;
  const auto& head = described_.head();
  const bool preflight = config_.cors && http::is_preflight(*config_.cors, head);
  const bool usage = route_ != nullptr && route_->respond && route_->respond->usage;
  if (!preflight && !usage) return;
  answer_before_limits(preflight ? "it is a CORS preflight"
                                 : "route " + route_->name + " shows the client's own limits");
  const bool answers = route_ != nullptr && (route_->respond || config_.cors->answers_preflights);
  explanation_.verdict.verdict = answers || answers_itself() ? "answer" : "forward";
  if (!preflight) return explain_answer(200, "application/json", {}, {});
  if (!answers) return explain_arrival({});
  std::string fields;
  http::append_preflight_fields(fields, *config_.cors, head);
  explain_answer(204, {}, fields, {});
}

void Explainer::evaluate_rules() {
  auto& request = described_.request();
  const bool unverified = policy::needs_claims(config_.rules, request);
  policy::Rejection rejection;
  if (unverified) rejection = evaluation_.collect_unverified(config_.rules, request, config_.names);
  const bool refused = rejection || (unverified && peek_refuses());
  described_.verify_token();
  explanation_.route.priority = policy::priority_of(request, route_, config_.tier_priorities);
  explanation_.client = policy::explain_client(request.client);
  described_.show_body(config_.rules);
  rule_checks_ = policy::check_all(config_.rules, request, config_.names);
  if (!refused) rejection = evaluation_.collect(config_.rules, request, config_.names);
  if (rejection) return explain_rejection(rejection);
  (void)peek_refuses();
  for (const auto& charge : evaluation_.remote.charges()) lookups_.push_back({.charge = charge});
}

// Looks up the limits in the key table without charging. Returns true if a limit refuses the request. Uses
// the same test as AdmissionController::refused_here().
bool Explainer::peek_refuses() {
  bool refuses = false;
  const auto& bill = evaluation_.local;
  auto outcomes = evaluation_.local.outcomes();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const auto& charge = bill.charges()[i];
    outcomes[i] = table_.peek(charge, now_);
    const bool queues = std::holds_alternative<limit::LeakyBucket>(*charge.limiter);
    refuses = refuses || (charge.enforced && !queues && !outcomes[i].allowed);
  }
  return refuses;
}

void Explainer::explain_rejection(const policy::Rejection& rejection) {
  answer_before_limits(policy::describe(rejection));
  std::string fields, body;
  append_rejection(fields, body, rejection, config_.client);
  explain_answer(policy::status_of(rejection), "application/json", fields, body);
  explanation_.verdict.rule = rejection.rule->name;
}

// Records that weir answers the request before it checks any limit.
void Explainer::answer_before_limits(const std::string& what) {
  decided_early_ = true;
  explanation_.verdict.verdict = "refuse";
  explanation_.verdict.why = "no limit is asked: " + what;
}

void Explainer::reject_early(unsigned status, std::string_view what) {
  answer_before_limits(std::string(what));
  std::string fields, body;
  append_error(fields, body, status, what, config_.client);
  explain_answer(status, "application/json", fields, body);
}

policy::Explanation Explainer::explain() {
  if (!decided_early_) take_redis_answers();
  explain_rules();
  if (!decided_early_) decide();
  return std::move(explanation_);
}

void Explainer::take_redis_answers() {
  auto outcomes = evaluation_.remote.outcomes();
  for (std::size_t i = 0; i < lookups_.size(); ++i) {
    outcomes[i] = lookups_[i].outcome;
    if (redis_now_ == base::TimePoint{}) redis_now_ = lookups_[i].clock;
    outcomes[i].ahead = redis::clock_ahead(lookups_[i].clock, redis_now_);
    if (!lookups_[i].error.empty()) unanswered_ |= limit::ChargeSet{1} << i;
  }
}

void Explainer::explain_rules() {
  for (const auto& rule : config_.rules)
    explanation_.rules.push_back({.name = rule.name,
                                  .mode = rule.mode == policy::Mode::Shadow ? "shadow" : "enforce",
                                  .store = rule.store == policy::Store::Redis ? "redis" : "memory",
                                  .match = rule.match.describe(),
                                  .why = rule_checks_.empty() ? "no limit is asked" : ""});
  for (std::size_t i = 0; i < rule_checks_.size(); ++i) {
    auto& shown = explanation_.rules[i];
    shown.why = rule_checks_[i].why_not;
    shown.applies = shown.why.empty();
    shown.key = rule_checks_[i].key;
    shown.cost = rule_checks_[i].cost;
  }
}

// Adds the state of each limit to the explanation of its rule.
void Explainer::explain_bill(const policy::Bill& bill, std::string_view note) {
  for (std::size_t i = 0; i < bill.charges().size(); ++i) {
    const auto& [rule, applied, descriptors, overdraft] = bill.source(i);
    const auto& charge = bill.charges()[i];
    const policy::RequestOfCharge seen(described_.request(), descriptors);
    const auto key = &bill == &fallback_ ? policy::name_in_redis(*rule, applied, *seen, config_.names)
                                         : std::optional(charge.key);
    auto state = policy::state_of(*rule, applied, key.value_or(charge.key), bill.outcomes()[i]);
    if (!note.empty()) state.note = note;
    if (!note.empty()) state.store = "memory";
    const bool remote = &bill == &evaluation_.remote;
    if (remote && lookups_[i].held_here) state.note = "paid from units that this weir took in advance";
    if (remote && !lookups_[i].error.empty()) state.note = "Redis did not answer: " + lookups_[i].error;
    state.known = !remote || lookups_[i].error.empty();
    if (limit::most_waiting(*charge.limiter) != 0) {
      const std::lock_guard lock(queue_.mutex);
      state.waiting = queue_.queue.waiting(charge.key);
    }
    const auto at =
        std::find_if(explanation_.rules.begin(), explanation_.rules.end(),
                     [name = std::string_view(rule->name)](const auto& shown) { return shown.name == name; });
    at->limits.push_back(std::move(state));
  }
}

// Adds the bandwidth of each rule that paces bodies to the explanation of the rule. Rules with a bandwidth
// decide about no request.
void Explainer::explain_pacing() {
  for (const auto& [rule, key] : evaluation_.paced) {
    const auto at = static_cast<std::size_t>(rule - config_.rules.data());
    auto& state = explanation_.rules[at].limits.emplace_back();
    state.limiter = "bandwidth " + rule->bandwidth;
    state.store = "memory";
    state.digest = base::in_hex(key);
    state.paces = true;
    state.outcome =
        table_.peek({.key = key, .limiter = rule->limiter.get(), .cost = 0, .rule = rule->rule_number}, now_);
  }
}

void Explainer::decide() {
  const auto* closed =
      unanswered_ == 0 ? nullptr
                       : evaluation_.fall_back(described_.request(), config_.names, fallback_, unanswered_);
  auto outcomes = fallback_.outcomes();
  for (std::size_t i = 0; i < outcomes.size(); ++i) outcomes[i] = table_.peek(fallback_.charges()[i], now_);
  explain_pacing();
  explain_bill(evaluation_.local, {});
  explain_bill(evaluation_.remote, {});
  explain_bill(fallback_, "Redis did not answer: this weir's own share, by on_store_failure = \"local\"");
  evaluation_.remote.remove(unanswered_);
  if (closed != nullptr) {
    reject_early(503, "the limiter's store cannot be reached; please retry");
    explanation_.verdict.why =
        "the store of rule " + closed->name + " is away, and its on_store_failure is \"closed\"";
    explanation_.verdict.rule = closed->name;
    return;
  }
  const std::array<const policy::Bill*, 3> bills{&evaluation_.local, &evaluation_.remote, &fallback_};
  explain_verdict(policy::decide(bills, now_), bills);
}

// If the queue that the request would join is full for the client (Rule::queue_per_client), refuses the
// request and returns true.
bool Explainer::refuse_if_client_queue_full(policy::Decision& decision,
                                            std::span<const policy::Bill* const> bills) {
  const auto slowest = policy::longest_delay(bills);
  const auto& rule = *slowest.bill->source(slowest.index).rule;
  const auto& charge = slowest.bill->charges()[slowest.index];
  const auto client = policy::name_client(described_.request(), config_.names.table);
  const std::lock_guard lock(queue_.mutex);
  const auto until = queue_.queue.crowded_until(charge.key, client, rule.queue_per_client);
  if (until) refuse_wait(decision, rule, *charge.limiter, *until - now_, now_);
  return until.has_value();
}

// Returns when the key's state equals that of a fresh key again, as AdmissionController::reset_at() does.
base::TimePoint Explainer::reset_at(const policy::Decision& decision) const noexcept {
  const auto& remote = evaluation_.remote;
  const auto& outcome = decision.outcome;
  for (std::size_t i = 0; i < remote.charges().size(); ++i)
    if (remote.source(i).rule == decision.rule)
      return redis_now_ + base::Duration(outcome.ahead) + outcome.reset_after;
  return now_ + outcome.reset_after;
}

// Returns true if weir itself would answer the request once all limits admit it.
bool Explainer::answers_itself() const {
  return route_ == nullptr || route_->respond || is_final_recipient(*route_, described_.head());
}

std::string Explainer::destination() const {
  if (is_question_) return "weir answers the question";
  if (route_ == nullptr) return "no route matches";
  return route_->respond ? "route " + route_->name + " answers" : "it goes to " + explanation_.route.target;
}

std::string Explainer::sentence(const policy::Decision& decision,
                                std::span<const policy::Bill* const> bills) const {
  switch (decision.verdict) {
    case policy::Verdict::Reject:
      if (decision.outcome.retry_after == base::kForever)
        return "rule " + decision.rule->name + " refuses: this costs more than it can ever admit";
      return "rule " + decision.rule->name + " refuses, for " +
             base::to_readable(decision.outcome.retry_after) +
             (decision.outcome.penalty_left.count() > 0 ? ": its key has a penalty" : "");
    case policy::Verdict::Delay:
      return "rule " + decision.delayed_by->name + " makes it wait " +
             base::to_readable(decision.start_at - now_);
    case policy::Verdict::Forward:
      break;
  }
  const std::string which = shadow_refuses(bills) ? " enforced rule " : " rule ";
  if (decision.rule == nullptr) return destination() + "; no" + which + "limits it";
  const auto admitted = "every" + which + "admits it";
  if (is_question_) return admitted;
  return route_ == nullptr ? destination() + "; " + admitted : admitted + "; " + destination();
}

void Explainer::explain_verdict(policy::Decision decision, std::span<const policy::Bill* const> bills) {
  auto& verdict = explanation_.verdict;
  verdict.why = sentence(decision, bills);
  if (decision.verdict == policy::Verdict::Delay && refuse_if_client_queue_full(decision, bills))
    verdict.why =
        "its client has all the places that queue_per_client of rule " + decision.rule->name + " allows it";
  if (decision.rule != nullptr) verdict.rule = decision.rule->name;
  std::string fields, body;
  append_rate_limit_headers(fields, decision, config_.server, reset_at(decision));
  if (decision.verdict == policy::Verdict::Reject) {
    verdict.verdict = "refuse";
    verdict.retry_after = decision.outcome.retry_after;
    const auto refusal =
        make_refusal(fields, body, *decision.rule, http::retry_after_seconds(decision.outcome.retry_after),
                     described_.head().fields);
    return explain_answer(refusal.status, refusal.content_type, fields, body);
  }
  verdict.verdict = is_question_ ? "allow" : answers_itself() ? "answer" : "forward";
  if (decision.verdict == policy::Verdict::Delay) {
    verdict.verdict = "delay";
    verdict.delay = decision.start_at - now_;
    verdict.rule = decision.delayed_by->name;
  }
  explain_arrival(fields);
}

// Describes what happens to a request that all limits admit.
void Explainer::explain_arrival(std::string_view fields) {
  if (is_question_) return explain_answer(200, {}, fields, {});
  std::string body;
  if (route_ == nullptr) {
    http::append_error_json(body, 404, "no route matches this request");
    return explain_answer(404, "application/json", fields, body);
  }
  if (is_final_recipient(*route_, described_.head())) return explain_last(fields);
  if (!route_->respond) return explain_answer(0, {}, fields, {});
  std::string lines(fields);
  if (policy::append_fields(*route_->respond, {described_.request(), {}}, lines))
    return explain_answer(route_->respond->status, route_->respond->content_type, lines,
                          route_->respond->body);
  http::append_error_json(body, 400, policy::kNoHostToRedirectTo);
  explain_answer(400, "application/json", lines, body);
}

void Explainer::explain_last(std::string_view fields) {
  const auto reply = max_forwards_answer(described_.head());
  std::string body;
  if (!reply.what.empty()) http::append_error_json(body, reply.status, reply.what);
  explanation_.verdict.why += ", but Max-Forwards ends it here";
  explain_answer(reply.status, "application/json", fields, body);
}

void Explainer::explain_answer(unsigned status, std::string_view content_type, std::string_view fields,
                               std::string_view body) {
  auto& verdict = explanation_.verdict;
  verdict.status = status;
  verdict.headers.clear();
  if (!content_type.empty()) verdict.headers.emplace_back("Content-Type", content_type);
  std::string lines(fields);
  if (status != 0 && route_ != nullptr && route_->edits)
    policy::edit_own_lines(route_->edits->response, {described_.request(), {}}, lines);
  if (status != 0 && config_.cors) http::append_cors_fields(lines, *config_.cors, described_.head().fields);
  add_fields(verdict.headers, lines);
  verdict.body = body;
}

}  // namespace weir::proxy
