#include "server/inspector.hpp"

#include "weir/base/hex.hpp"
#include "weir/net/use_task.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/policy/octet_text.hpp"
#include "weir/proxy/explainer.hpp"

#include <algorithm>
#include <mutex>

#include <boost/asio/post.hpp>

namespace weir::server {

namespace {

namespace asio = net::asio;

// How long the inspector waits for one job in Redis: longer than the time limit of a single call to Redis. A
// reset reads the key before and after the reset, so twice this time must fit into
// admin::ServerOptions::deadline.
constexpr std::chrono::seconds kPatience{4};

// Returns the present state of the charge's key without charging it. If the limiter would refuse the charge,
// returns this refusal; otherwise the outcome of a charge of cost 0, which shows all remaining units.
limit::Outcome outcome_without_charge(const limit::KeyTable& table, limit::Charge charge,
                                      base::TimePoint now) {
  const auto one = table.peek(charge, now);
  charge.cost = 0;
  return one.allowed ? table.peek(charge, now) : one;
}

policy::LimitState state_of(const policy::Rule& rule, const KeyLocation& location, limit::Outcome outcome,
                            proxy::SharedQueue& queue) {
  const bool whole =
      outcome.allowed && outcome.remaining == limit::quota_of(*location.charge.limiter, outcome);
  if (whole && !outcome.overflow) outcome.reset_after = base::Duration{0};
  outcome.delay = base::Duration{0};
  auto state = policy::state_of(rule, location.applied, location.charge.key, outcome);
  if (location.messages) state.choice += state.choice.empty() ? "messages" : ", messages";
  if (location.messages) state.store = "memory";
  if (limit::most_waiting(*location.charge.limiter) != 0) {
    const std::lock_guard lock(queue.mutex);
    state.waiting = queue.queue.waiting(location.charge.key);
  }
  return state;
}

std::string names_of(std::span<const policy::Rule> rules) {
  std::string names;
  for (const auto& rule : rules) names += (names.empty() ? "" : ", ") + rule.name;
  return names.empty() ? "there are none" : "there are " + names;
}

// Returns the texts in one pair of quotes, separated by blanks, for an error message.
std::string quoted(std::span<const std::string> texts) {
  std::string all;
  for (const auto& text : texts) all += (all.empty() ? "" : " ") + policy::octet_text(text);
  return "\"" + all + "\"";
}

std::string several(const policy::Rule& rule, std::span<const std::string> texts,
                    std::span<const ShownKey> shown) {
  constexpr std::size_t kMost = 8;
  std::string digests;
  for (const auto& one : shown.first(std::min(shown.size(), kMost)))
    digests += (digests.empty() ? "" : ", ") + base::in_hex(one.name);
  return std::to_string(shown.size()) + " clients of rule " + rule.name + " have the label " + quoted(texts) +
         "; write the digest of one, such as " + digests;
}

// Returns true if the state shows that the key has no charges at all.
bool is_whole(const policy::LimitState& state, const KeyLocation& location) {
  const auto& outcome = state.outcome;
  return state.known && outcome.allowed && !outcome.overflow && state.waiting == 0 &&
         outcome.violations == 0 && outcome.remaining == limit::quota_of(*location.charge.limiter, outcome);
}

// If all limits have the same digest, adds a note to each: the key belongs to only one of these limits.
void note_one_of(std::vector<policy::LimitState>& limits) {
  const bool same = limits.size() > 1 && std::all_of(limits.begin(), limits.end(), [&](const auto& state) {
                      return state.digest == limits.front().digest;
                    });
  if (!same) return;
  for (auto& state : limits)
    state.note = "the key belongs to one of these limits; its digest does not show which";
}

constexpr const char* kAsShown =
    "as weir top, the dashboard and the access log (key) show it: a digest, or a label such as user:paula";

}  // namespace

// Sends the job to the first worker and waits for its end. Returns false after a time-out. After a time-out
// the worker still uses the job, so the caller must not read the job's results.
net::Task<bool> Inspector::ask_redis(std::shared_ptr<RedisJob> job) {
  if (!job->config->names_agreed) {
    for (auto& lookup : job->lookups)
      lookup.error = "weir has not read the secret that hashes client keys yet";
    co_return true;
  }
  const auto ready = std::make_shared<net::Timer>(executor_);
  ready->expires_after(kPatience);
  workers_.front()->run_redis_job(
      std::move(job), [ready, executor = executor_] { asio::post(executor, [ready] { ready->cancel(); }); });
  net::ErrorCode ec;
  co_await ready->async_wait(net::use_task(ec));
  co_return ec == asio::error::operation_aborted;
}

net::Task<void> Inspector::answer_by_redis(const ConfigRef& in_force, std::span<proxy::RedisLookup> lookups) {
  const auto job = std::make_shared<RedisJob>();
  job->config = in_force;
  job->lookups.assign(lookups.begin(), lookups.end());
  auto pending = ask_redis(job);
  const bool answered = co_await std::move(pending);
  for (std::size_t i = 0; i < lookups.size(); ++i) {
    if (answered)
      lookups[i] = job->lookups[i];
    else
      lookups[i].error = "the worker does not answer";
  }
}

net::Task<policy::Explanation> Inspector::explain(policy::ExplainRequest explain_request) {
  // `in_force` keeps the configuration alive, because a reload may happen during the wait for Redis.
  const auto in_force = moment_.config();
  const auto& config = *in_force;
  const double load = config.elastic ? moment_.load() : 1;
  proxy::Explainer explainer(config, table_, queue_, explain_request,
                             {.limits = clock_.now(), .machine = net::Clock::machine_now()}, load);
  if (!explainer.remote().empty()) co_await answer_by_redis(in_force, explainer.remote());
  co_return explainer.explain();
}

// Returns the state of the key at each of its locations: first those in Redis, then those in the key table.
net::Task<std::vector<policy::LimitState>> Inspector::peek(const ConfigRef& in_force,
                                                           const policy::Rule& rule,
                                                           const KeyLocations& locations) {
  const auto job = std::make_shared<RedisJob>();
  job->config = in_force;
  job->state_only = true;
  for (const auto& charge : locations.forgotten_there) job->forget.push_back(charge);
  for (const auto& location : locations.there) job->lookups.push_back({.charge = location.charge});
  bool answered = true;
  if (!locations.there.empty()) {
    auto pending = ask_redis(job);
    answered = co_await std::move(pending);
  }
  std::vector<policy::LimitState> states;
  for (std::size_t i = 0; i < locations.there.size(); ++i) {
    const auto error = answered ? job->lookups[i].error : std::string("the worker does not answer");
    auto state =
        state_of(rule, locations.there[i], answered ? job->lookups[i].outcome : limit::Outcome{}, queue_);
    state.known = error.empty();
    if (!error.empty()) state.note = "Redis did not answer: " + error;
    states.push_back(std::move(state));
  }
  for (const auto& location : locations.here) {
    const auto outcome = outcome_without_charge(table_, location.charge, clock_.now());
    auto state = state_of(rule, location, outcome, queue_);
    if (!outcome.overflow && !table_.has_state(location.charge.key))
      state.note = "nothing has been charged to it";
    states.push_back(std::move(state));
  }
  co_return states;
}

// Logs a reset before weir sends it to Redis, so that the log has the line even if Redis does not reply.
void Inspector::note(const policy::Rule& rule, const KeyLocations& locations, const std::string& peer) {
  std::string digests;
  for (const auto* list : {&locations.there, &locations.here})
    for (const auto& location : *list) digests += " " + base::in_hex(location.charge.key);
  log_.audit("admin: " + peer + " reset a key of rule " + rule.name + ":" + digests);
}

// Writes the reset to the access log for `weir replay`. A replay charges the recorded requests, so it must
// also repeat the recorded resets.
void Inspector::note_for_replay(const policy::Rule& rule, std::uint64_t run, base::TimePoint at,
                                std::span<const observe::ForgottenKey> keys) {
  if (!access_log_.is_on() || !access_log_.fields().has(observe::LogField::Replay)) return;
  std::string line;
  observe::append_json(line, {.run = run,
                              .at = at,
                              .clock_ahead = -clock_.machine_ahead(),
                              .rule = rule.name,
                              .asks = rule.asks,
                              .keys = keys});
  access_log_.write_or_lose(line);
}

// Resets the key in the table, in Redis, and in this process's copies of Redis state. Then reads the key's
// state to verify the reset.
net::Task<void> Inspector::reset(const ConfigRef& in_force, const policy::Rule& rule, KeyLocations locations,
                                 admin::KeyResponse& answer) {
  const auto at = clock_.now();
  std::vector<observe::ForgottenKey> forgotten;
  for (const auto& key : locations.forgotten_here)
    (void)table_.forget(key, at, &forgotten.emplace_back(observe::ForgottenKey{.key = key}).timestamp);
  for (const auto& location : locations.there) locations.forgotten_there.push_back(location.charge);
  auto pending = peek(in_force, rule, locations);
  const auto now = co_await std::move(pending);
  answer.reset = true;
  for (const auto& state : now) {
    if (state.known) continue;
    answer.status = 503;
    answer.error = state.note + "; the key may not have been reset there";
  }
  if (answer.status == 503)
    log_.audit("admin: Redis did not answer and may not have reset the key of rule " + rule.name);
  const auto there = limit::timestamp_at(clock_.now());
  for (std::size_t i = 0; i < locations.there.size(); ++i)
    if (now[i].known) forgotten.push_back({.key = locations.there[i].charge.key, .timestamp = there});
  note_for_replay(rule, observe::run_of(in_force->names.table), at, forgotten);
}

// Returns the limiter that counts the shown client; nullopt if unknown. A client has another digest for each
// limiter of the rule, but `shown` has only one digest and does not name its limiter. So the function assumes
// each limiter `from` in turn, and computes the client's digest for each other limiter `to`. If the key table
// has a key with this digest, the assumption is right.
std::optional<limit::LimiterId> Inspector::limiter_id_of(const policy::Rule& rule,
                                                         const ShownKey& shown) const {
  if (shown.limiter_id) return shown.limiter_id;
  const auto all = policy::limiters_of(rule);
  for (const auto& from : all)
    for (const auto& to : all)
      if (&from != &to && table_.has_state(policy::name_under(rule, from, to, shown.name)))
        return policy::limiter_id_of(from.variant, from.elastic);
  return std::nullopt;
}

bool Inspector::is_counted(const Found& found, const std::optional<observe::TopOfRule>& top) const {
  std::size_t at = 0;  // index into `found.limits`, which has the order of this loop
  for (const auto* list : {&found.locations.there, &found.locations.here})
    for (const auto& location : *list) {
      const auto& state = found.limits[at++];
      if (state.known && !is_whole(state, location)) return true;
      if (list == &found.locations.here && table_.has_state(location.charge.key)) return true;
      if (top && lists(*top, location.charge.key)) return true;
    }
  return false;
}

// Returns the keys that `texts` may mean, the likeliest first. `texts` come from a request to the admin
// listener. They may be the values of the rule's key, or the text by which weir shows a client. If a result
// is an error, it is the last in the list.
std::vector<Inspector::Found> Inspector::candidates(const proxy::Configuration& config,
                                                    const policy::Rule& rule,
                                                    const std::vector<std::string>& texts,
                                                    const std::optional<observe::TopOfRule>& top) const {
  std::vector<Found> all;
  const auto values = policy::read_key_values(rule, config.client, texts);
  if (values) {
    auto& found = all.emplace_back();
    found.locations = find_locations(rule, *values, config.names);
    for (const auto& value : *values) found.key.push_back(policy::describe(value));
  }
  auto shown = top ? find_shown(rule, *top, texts) : std::vector<ShownKey>{};
  if (shown.empty())
    if (auto digest = read_digest(texts)) shown.push_back(std::move(*digest));
  if (shown.size() > 1) {
    all.push_back({.status = 400, .error = several(rule, texts, shown)});
  } else if (!shown.empty()) {
    auto& found = all.emplace_back();
    found.locations = find_locations(rule, shown[0].name, limiter_id_of(rule, shown[0]), config.names);
    found.key.push_back(std::move(shown[0].label));
  } else if (!values) {
    all.push_back({.status = 400, .error = values.error().message + "; or write the client " + kAsShown});
  }
  return all;
}

// Finds the key that the texts name, and reads its state. If the texts have several meanings and Redis does
// not answer, the found key may be the wrong one.
net::Task<void> Inspector::find(const ConfigRef& in_force, const policy::Rule& rule,
                                const std::vector<std::string>& texts, Found& found) {
  const auto top = moment_.top(rule.index);
  found.status = 404;
  found.error = "rule " + rule.name + " has no state for " + quoted(texts) +
                ": the client is unknown, or its limit is unused again; write the client by its key, " +
                policy::describe(rule.key) + ", or " + kAsShown;
  auto all = candidates(*in_force, rule, texts, top);
  for (auto& candidate : all) {
    if (candidate.status == 200) {
      auto pending = peek(in_force, rule, candidate.locations);
      candidate.limits = co_await std::move(pending);
      const bool unsure = std::any_of(candidate.limits.begin(), candidate.limits.end(),
                                      [](const auto& state) { return !state.known; });
      const bool counted = rule.key.empty() || is_counted(candidate, top);
      if (!counted && !unsure) continue;
      note_one_of(candidate.limits);
      found = std::move(candidate);
      if (counted) co_return;
    } else if (found.status != 200) {
      found = std::move(candidate);
    }
  }
}

net::Task<admin::KeyResponse> Inspector::keys(admin::KeyRequest question) {
  // `in_force` keeps the configuration alive, because a reload may happen during the wait for Redis.
  const auto in_force = moment_.config();
  const auto& config = *in_force;
  const auto named = std::find_if(config.rules.begin(), config.rules.end(),
                                  [&](const policy::Rule& rule) { return rule.name == question.rule; });
  admin::KeyResponse answer;
  const auto wrong = [&](unsigned status, std::string what) {
    answer.status = status;
    answer.error = std::move(what);
  };
  if (named == config.rules.end()) {
    wrong(404, "there is no rule \"" + question.rule + "\": " + names_of(config.rules));
    co_return answer;
  }
  const policy::Rule& rule = *named;
  if (question.reset && holds(rule))
    wrong(409, "rule " + rule.name +
                   " counts requests in flight, which cannot be reset; each is released when it ends");
  if (answer.status != 200) co_return answer;
  Found found;
  auto finding = find(in_force, rule, question.key, found);
  co_await std::move(finding);
  if (found.status != 200) wrong(found.status, std::move(found.error));
  if (answer.status != 200) co_return answer;
  answer.key = std::move(found.key);
  answer.limits = std::move(found.limits);
  if (!question.reset) co_return answer;
  note(rule, found.locations, question.peer);
  auto resetting = reset(in_force, rule, std::move(found.locations), answer);
  co_await std::move(resetting);
  co_return answer;
}

}  // namespace weir::server
