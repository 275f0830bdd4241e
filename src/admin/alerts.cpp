#include "weir/admin/alerts.hpp"

#include "admin/totals.hpp"
#include "admin/webhook.hpp"

#include "weir/observe/delivery.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <random>

#include <boost/json.hpp>
#include <unistd.h>

namespace weir::admin {

namespace {

namespace json = boost::json;
using Change = observe::Surge::Change;

constexpr std::chrono::seconds kLook{1};

// How often it has happened since the start; what an alert is on may be gone from the configuration.
std::uint64_t total_of(const AlertSettings& alert, const Sources& sources) {
  std::uint64_t sum = 0;
  switch (alert.on) {
    case AlertOn::Refusals:
      for (std::size_t i = 0; i < sources.rules.size(); ++i)
        if (sources.rules[i].name == alert.subject)
          sum += total(sources, i, observe::RuleOutcome::Refused) +
                 total(sources, i, observe::RuleOutcome::ShadowRefused);
      break;
    case AlertOn::Upstream:
      for (std::size_t i = 0; i < sources.upstreams.size(); ++i)
        if (sources.upstreams[i] == alert.subject)
          sum += total(sources, [&](const observe::Counters& counters) {
            return counters.upstream(i).failures.value() + counters.upstream(i).errors.value();
          });
      break;
    case AlertOn::Redis:
      if (!sources.redis) break;
      for (const RedisFigures& worker : sources.redis()) sum += worker.failures;
      break;
  }
  return sum;
}

// "2026-02-20T10:00:00Z" (RFC 3339).
std::string written(base::TimePoint at) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%FT%TZ", &parts)};
}

const char* subject_name(AlertOn on) {
  constexpr std::array<const char*, 3> kNames{"rule", "upstream", "store"};
  return kNames[static_cast<std::size_t>(on)];
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

struct Alert {
  AlertSettings settings;
  net::TlsContext tls;  // null where the webhook speaks none
  observe::Surge surge;
  observe::Delivery delivery;
  AlertFigures figures;
};

std::shared_ptr<Alert> make(AlertSettings settings) {
  net::TlsContext tls;
  if (settings.webhook.tls) {
    auto made = net::make_tls_client_context({.ca = settings.webhook.ca});
    if (!made) throw std::runtime_error("alert " + settings.name + ": " + made.error().message);
    tls = std::move(*made);
  }
  AlertFigures figures;
  figures.name = settings.name;
  observe::Surge surge(settings.surge);
  observe::Delivery delivery({.attempts = settings.posts, .most = settings.attempts});
  return std::make_shared<Alert>(
      Alert{std::move(settings), std::move(tls), std::move(surge), std::move(delivery), std::move(figures)});
}

}  // namespace

struct Alerts::Impl {
  Impl(net::Executor on, std::vector<AlertSettings> settings, Sources read,
       std::function<void(const std::string&)> told)
      : executor(on),
        sources(std::move(read)),
        say(std::move(told)),
        look_timer(on),
        post_timer(on),
        watchdog(on),
        post(on, watchdog) {
    change(std::move(settings));
  }

  void change(std::vector<AlertSettings> settings);
  void succeed(const Alert& old, Alert& fresh);
  void look();
  void tell(Alert& alert, Change change, base::TimePoint now);
  [[nodiscard]] std::string message(const Alert& alert, Change change, base::TimePoint now) const;
  net::Task<void> keep_posting();
  net::Task<void> try_to_post(std::shared_ptr<Alert> alert, std::string body);

  net::Executor executor;
  Sources sources;
  std::function<void(const std::string&)> say;
  net::Timer look_timer;
  net::Timer post_timer;
  net::Watchdog watchdog;
  Post post;
  std::vector<std::shared_ptr<Alert>> alerts;  // shared with an attempt to post that outlives a change
  std::mt19937_64 random{std::random_device{}()};
  const std::string host = host_name();
};

void Alerts::Impl::change(std::vector<AlertSettings> settings) {
  std::vector<std::shared_ptr<Alert>> changed;
  for (AlertSettings& each : settings) {
    const auto old = std::find_if(alerts.begin(), alerts.end(),
                                  [&](const auto& alert) { return alert->settings.name == each.name; });
    if (old != alerts.end() && (*old)->settings == each) {
      changed.push_back(*old);
      continue;
    }
    changed.push_back(make(std::move(each)));
    if (old != alerts.end()) succeed(**old, *changed.back());
    changed.back()->figures.above = limit::to_string(changed.back()->settings.surge.above);
  }
  alerts = std::move(changed);
}

// Under other settings it begins anew: what the old ones said is over is told so.
void Alerts::Impl::succeed(const Alert& old, Alert& fresh) {
  fresh.figures = old.figures;
  if (!old.surge.firing()) return;
  const auto now = sources.now();
  ++fresh.figures.ended;
  (void)fresh.delivery.put(message(old, Change::Ended, now), now);
}

void Alerts::Impl::look() {
  const auto now = sources.now();
  for (const auto& alert : alerts) {
    const Change change = alert->surge.note(total_of(alert->settings, sources), now);
    alert->figures.firing = alert->surge.firing();
    alert->figures.since = alert->surge.since();
    alert->figures.seen = alert->surge.seen();
    if (change != Change::None) tell(*alert, change, now);
  }
  look_timer.expires_after(kLook);
  look_timer.async_wait([this](const net::ErrorCode& error) {
    if (!error) look();
  });
}

void Alerts::Impl::tell(Alert& alert, Change change, base::TimePoint now) {
  if (change == Change::Began) ++alert.figures.fired;
  if (change == Change::Ended) ++alert.figures.ended;
  if (change != Change::GoesOn)
    say("alert " + alert.settings.name + (change == Change::Began ? " fires: " : " has ended: ") +
        std::to_string(alert.figures.seen) + " within the last period, the threshold is " +
        alert.figures.above);
  if (alert.delivery.put(message(alert, change, now), now)) ++alert.figures.superseded;
}

std::string Alerts::Impl::message(const Alert& alert, Change change, base::TimePoint now) const {
  const auto& settings = alert.settings;
  const char* const state = change == Change::Ended ? "ended" : "firing";
  const char* const what = settings.on == AlertOn::Refusals ? "refusals" : "failures";
  const std::string text = "weir on " + host + ": alert " + settings.name + " is " + state + ": " +
                           std::to_string(alert.surge.seen()) + " " + what + " of " +
                           subject_name(settings.on) + " " + settings.subject + ", threshold " +
                           alert.figures.above;
  return json::serialize(json::object{{"alert", settings.name},
                                      {"state", state},
                                      {"repeated", change == Change::GoesOn},
                                      {subject_name(settings.on), settings.subject},
                                      {what, alert.surge.seen()},
                                      {"above", alert.figures.above},
                                      {"since", written(alert.surge.since())},
                                      {"at", written(now)},
                                      {"host", host},
                                      {"version", sources.version},
                                      {"text", text}});
}

// One after another: whoever waits for a receiver that is slow waits for one timeout of it.
net::Task<void> Alerts::Impl::keep_posting() {
  for (;;) {
    post_timer.expires_after(kLook);
    const auto ended = co_await net::Expiry(post_timer);
    if (ended) co_return;
    const auto all = alerts;  // they may change meanwhile
    for (const auto& alert : all) {
      const std::string* const due = alert->delivery.begin(sources.now());
      if (due != nullptr) co_await try_to_post(alert, *due);
    }
  }
}

net::Task<void> Alerts::Impl::try_to_post(std::shared_ptr<Alert> alert, std::string body) {
  using End = observe::Delivery::End;
  const auto& settings = alert->settings;
  const auto end = co_await post.send(settings.webhook, alert->tls.get(), settings.timeout, body);
  const auto came_of_it = end.fault.empty() ? alert->delivery.sent()
                                            : alert->delivery.failed(end.hopeless, sources.now(), random());
  auto& figures = alert->figures;
  ++(came_of_it == End::Sent ? figures.posted : came_of_it == End::Again ? figures.retried : figures.lost);
  if (came_of_it == End::Sent) co_return;
  say("alert " + settings.name + ": its webhook at " + settings.webhook.address.to_string() +
      " did not take it: " + end.fault + (came_of_it == End::Again ? "; trying again" : "; giving up"));
}

Alerts::Alerts(net::Executor executor, std::vector<AlertSettings> settings, Sources sources,
               std::function<void(const std::string&)> say)
    : impl_(std::make_unique<Impl>(executor, std::move(settings), std::move(sources), std::move(say))) {}

Alerts::~Alerts() {
  net::Reactor::of(impl_->executor).end_tasks();
}

std::optional<std::string> Alerts::fault_of(const std::vector<AlertSettings>& settings) {
  try {
    for (const auto& each : settings) make(each);
    return std::nullopt;
  } catch (const std::exception& fault) {
    return fault.what();
  }
}

void Alerts::start() {
  impl_->watchdog.start();
  impl_->look();
  // A task that ends otherwise than with its timer has thrown.
  net::spawn(impl_->executor, impl_->keep_posting(), [this](const std::exception_ptr& failure) {
    if (failure) impl_->say("alerts: posting has ended; weir has to be started anew for it");
  });
}

void Alerts::change(std::vector<AlertSettings> settings, Sources sources) {
  impl_->change(std::move(settings));
  impl_->sources = std::move(sources);
}

std::vector<AlertFigures> Alerts::figures() const {
  std::vector<AlertFigures> figures;
  for (const auto& alert : impl_->alerts) figures.push_back(alert->figures);
  return figures;
}

}  // namespace weir::admin
