#include "app/inspector.hpp"

#include "weir/base/hex.hpp"
#include "weir/policy/key_values.hpp"
#include "weir/proxy/explainer.hpp"

#include <algorithm>
#include <mutex>

#include <boost/asio/post.hpp>

namespace weir::app {

namespace {

namespace asio = net::asio;

// Long against what Redis is given for an answer, and twice within admin::ServerOptions::deadline: a key that
// is given back is looked at before and after.
constexpr std::chrono::seconds kPatience{4};

// How it stands with nothing asked: as limit::standing() has it, of any limiter.
limit::Outcome standing_in(const limit::KeyTable& table, limit::Charge charge, base::TimePoint now) {
  const auto one = table.peek(charge, now);
  charge.cost = 0;
  return one.allowed ? table.peek(charge, now) : one;
}

policy::LimitState state_of(const policy::Rule& rule, const KeyPlace& place, limit::Outcome outcome,
                            proxy::SharedQueue& queue) {
  const bool whole = outcome.allowed && outcome.remaining == limit::quota_of(*place.charge.limiter, outcome);
  if (whole && !outcome.overflow) outcome.reset_after = base::Duration{0};
  outcome.delay = base::Duration{0};
  auto state = policy::state_of(rule, place.applied, place.charge.key, outcome);
  if (place.messages) state.choice += state.choice.empty() ? "messages" : ", messages";
  if (place.messages) state.store = "memory";
  if (limit::most_waiting(*place.charge.limiter) != 0) {
    const std::lock_guard lock(queue.mutex);
    state.waiting = queue.queue.waiting(place.charge.key);
  }
  return state;
}

std::string names_of(std::span<const policy::Rule> rules) {
  std::string names;
  for (const auto& rule : rules) names += (names.empty() ? "" : ", ") + rule.name;
  return names.empty() ? "there is none" : "there are " + names;
}

}  // namespace

// By the first worker's connection. False: nobody answered in time, and the errand is that worker's.
net::Awaitable<bool> Inspector::ask_redis(std::shared_ptr<RedisErrand> errand) {
  if (!moment_.config()->names_agreed) {
    for (auto& look : errand->looks) look.error = "weir does not know the secret of clients' names there yet";
    co_return true;
  }
  const auto ready = std::make_shared<net::Timer>(executor_);
  ready->expires_after(kPatience);
  workers_.front()->run_errand(std::move(errand), [ready, executor = executor_] {
    asio::post(executor, [ready] { ready->cancel(); });
  });
  net::ErrorCode ec;
  co_await ready->async_wait(net::into(ec));
  co_return ec == asio::error::operation_aborted;
}

net::Awaitable<void> Inspector::answer_by_redis(std::span<proxy::Look> looks) {
  const auto errand = std::make_shared<RedisErrand>();
  errand->looks.assign(looks.begin(), looks.end());
  auto asking = ask_redis(errand);
  const bool answered = co_await std::move(asking);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    if (answered)
      looks[i] = errand->looks[i];
    else
      looks[i].error = "the worker does not answer";
  }
}

net::Awaitable<policy::Explanation> Inspector::explain(policy::Inquiry inquiry) {
  const auto in_force = moment_.config();  // a reload may come while Redis is asked
  const auto& config = *in_force;
  const double load = config.elastic ? moment_.load() : 1;
  proxy::Explainer explainer(config, table_, queue_, inquiry, clock_.now(), load);
  if (!explainer.remote().empty()) co_await answer_by_redis(explainer.remote());
  co_return explainer.explain();
}

// How the keys stand, those in Redis first.
net::Awaitable<std::vector<policy::LimitState>> Inspector::look(const policy::Rule& rule,
                                                                const KeyPlaces& places) {
  const auto errand = std::make_shared<RedisErrand>();
  errand->standing = true;
  for (const auto& charge : places.forgotten_there) errand->forget.push_back(charge);
  for (const auto& place : places.there) errand->looks.push_back({.charge = place.charge});
  bool answered = true;
  if (!places.there.empty()) {
    auto asking = ask_redis(errand);
    answered = co_await std::move(asking);
  }
  std::vector<policy::LimitState> states;
  for (std::size_t i = 0; i < places.there.size(); ++i) {
    const auto error = answered ? errand->looks[i].error : std::string("the worker does not answer");
    auto state =
        state_of(rule, places.there[i], answered ? errand->looks[i].outcome : limit::Outcome{}, queue_);
    state.known = error.empty();
    if (!error.empty()) state.note = "Redis did not answer: " + error;
    states.push_back(std::move(state));
  }
  for (const auto& place : places.here) {
    const auto outcome = standing_in(table_, place.charge, clock_.now());
    auto state = state_of(rule, place, outcome, queue_);
    if (!outcome.overflow && !table_.knows(place.charge.key)) state.note = "nothing is charged to it";
    states.push_back(std::move(state));
  }
  co_return states;
}

// What came of it in Redis is known later; that it was asked for is not to be lost.
void Inspector::note(const policy::Rule& rule, const KeyPlaces& places, const std::string& peer) {
  std::string digests;
  for (const auto* list : {&places.there, &places.here})
    for (const auto& place : *list) digests += " " + base::in_hex(place.charge.key);
  log_.audit("admin: " + peer + " gave back all of a key of rule " + rule.name + ":" + digests);
}

// A replay charges the requests again that were charged then, so it has to give back what was given back.
void Inspector::note_for_replay(const policy::Rule& rule, std::uint64_t run, base::TimePoint at,
                                std::span<const observe::ForgottenKey> keys) {
  if (!access_log_.is_on() || !access_log_.fields().has(observe::LogField::Replay)) return;
  std::string line;
  observe::append_json(line, {.run = run, .at = at, .rule = rule.name, .asks = rule.asks, .keys = keys});
  access_log_.write_or_lose(line);
}

// In the table, in Redis, and in what this process holds or knows of it; and looks whether it is so.
net::Awaitable<void> Inspector::reset(const policy::Rule& rule, KeyPlaces places, std::uint64_t run,
                                      admin::KeyAnswer& answer) {
  const auto at = clock_.now();
  std::vector<observe::ForgottenKey> forgotten;
  for (const auto& key : places.forgotten_here)
    (void)table_.forget(key, at, &forgotten.emplace_back(observe::ForgottenKey{.key = key}).turn);
  for (const auto& place : places.there) places.forgotten_there.push_back(place.charge);
  auto looking = look(rule, places);
  const auto now = co_await std::move(looking);
  answer.reset = true;
  for (const auto& state : now) {
    if (state.known) continue;
    answer.status = 503;
    answer.error = state.note + ": the key may not have been given back there";
  }
  if (answer.status == 503)
    log_.audit("admin: Redis did not answer, and may not have given back the key of rule " + rule.name);
  const auto there = limit::turn_at(clock_.now());
  for (std::size_t i = 0; i < places.there.size(); ++i)
    if (now[i].known) forgotten.push_back({.key = places.there[i].charge.key, .turn = there});
  note_for_replay(rule, run, at, forgotten);
}

net::Awaitable<admin::KeyAnswer> Inspector::keys(admin::KeyQuestion question) {
  const auto in_force = moment_.config();  // a reload may come while Redis is asked
  const auto& config = *in_force;
  const auto found = std::find_if(config.rules.begin(), config.rules.end(),
                                  [&](const policy::Rule& rule) { return rule.name == question.rule; });
  admin::KeyAnswer answer;
  const auto wrong = [&](unsigned status, std::string what) {
    answer.status = status;
    answer.error = std::move(what);
  };
  if (found == config.rules.end()) {
    wrong(404, "no rule is called \"" + question.rule + "\": " + names_of(config.rules));
    co_return answer;
  }
  const policy::Rule& rule = *found;
  const auto values = policy::read_key_values(rule, config.client, question.key);
  if (!values) wrong(400, values.error().message);
  if (answer.status != 200) co_return answer;
  const auto places = find_places(rule, *values, config.names);
  if (question.reset && places.holds())
    wrong(409, "the rule " + rule.name +
                   " counts what is under way: that comes back when it ends, and not before");
  if (answer.status != 200) co_return answer;
  for (const auto& value : *values) answer.key.push_back(policy::describe(value));
  auto looking = look(rule, places);
  answer.limits = co_await std::move(looking);
  if (!question.reset) co_return answer;
  note(rule, places, question.peer);
  auto resetting = reset(rule, places, observe::run_of(config.names.table), answer);
  co_await std::move(resetting);
  co_return answer;
}

}  // namespace weir::app
