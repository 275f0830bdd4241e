#include "weir/admin/alerts.hpp"

#include "admin/alerts/alert_message.hpp"
#include "admin/alerts/alert_registry.hpp"
#include "admin/alerts/webhook.hpp"
#include "admin/metrics/faults.hpp"

#include <random>
#include <utility>

namespace weir::admin {

namespace {

constexpr std::chrono::seconds kTurn{1};

}  // namespace

struct Alerts::Impl {
  Impl(net::Executor on, std::vector<AlertSettings> settings, Sources read,
       std::function<void(const std::string&)> log_line)
      : executor(on),
        sources(std::move(read)),
        report(std::move(log_line)),
        timer(on),
        watchdog(on),
        book(sources.version, report) {
    book.change(std::move(settings), {});
  }

  void turn();
  void post_what_is_due();
  net::Task<void> post(std::shared_ptr<Alert> alert, std::string body);
  void note_end(Alert& alert, const Post::End& end);

  net::Executor executor;
  Sources sources;
  std::function<void(const std::string&)> report;
  net::Timer timer;
  net::Watchdog watchdog;
  AlertRegistry book;
  const Faults::Report report_fault{[this](std::string_view what) { report(std::string(what)); }};
  Faults faults{"alerts: looking and posting", report_fault};
  std::mt19937_64 random{std::random_device{}()};
};

// Checks all alerts and starts their posts, once a second. If a step fails for lack of memory, the next call
// repeats the step.
void Alerts::Impl::turn() {
  try {
    book.update(sources, sources.now());
    post_what_is_due();
    faults.works();
  } catch (...) {
    faults.note();
  }
  timer.expires_after(kTurn);
  timer.async_wait([this](const net::ErrorCode& error) {
    if (!error) turn();
  });
}

// Starts each post in its own coroutine, so that a slow receiver does not delay other posts.
void Alerts::Impl::post_what_is_due() {
  for (const auto& alert : book.alerts_to_post()) {
    const std::string* const due = alert->delivery.begin(sources.now());
    if (due == nullptr) continue;
    try {
      net::spawn(executor, post(alert, *due), [](const std::exception_ptr&) {});
    } catch (const std::exception& fault) {
      faults.note();
      note_end(*alert, {fault.what()});
    }
  }
}

net::Task<void> Alerts::Impl::post(std::shared_ptr<Alert> alert, std::string body) {
  const auto& settings = alert->settings;
  // Holds a reference to the TLS context, because read_authorities() may replace the alert's context during
  // the post.
  const auto tls = net::share(alert->tls.get());
  Post::End end;
  try {
    Post attempt(executor, watchdog, *alert->lookup);
    end = co_await attempt.send(settings.webhook, tls.get(), settings.timeout, body);
  } catch (const std::exception& fault) {
    end = {fault.what()};
  }
  note_end(*alert, end);
}

void Alerts::Impl::note_end(Alert& alert, const Post::End& end) {
  using End = observe::Delivery::End;
  auto& delivery = alert.delivery;
  const bool was_overdue = delivery.is_overdue();
  const bool was_replaced = delivery.is_replaced();
  const auto result =
      end.fault.empty() ? delivery.sent() : delivery.failed(end.hopeless, sources.now(), random());
  auto& figures = *alert.figures;
  if (result == End::Sent) ++figures.posted;
  if (result == End::Again) ++figures.retried;
  if (result == End::Sent) return;
  if (!was_overdue && (result == End::GivenUp || delivery.is_overdue())) ++figures.failed;
  const auto& settings = alert.settings;
  const auto* const next = was_replaced           ? "; a newer message replaces it"
                           : result == End::Again ? "; trying again"
                                                  : "; giving up";
  report("alert " + title_of(alert) + ": its webhook at " + settings.webhook.address.to_string() +
         (end.may_have_taken ? " may not have received the message: " : " did not accept the message: ") +
         end.fault + next);
}

Alerts::Alerts(net::Executor executor, std::vector<AlertSettings> settings, Sources sources,
               std::function<void(const std::string&)> report)
    : impl_(std::make_unique<Impl>(executor, std::move(settings), std::move(sources), std::move(report))) {
  // Creates the reactor now, because it needs a file descriptor, and there may be none left later.
  (void)net::Reactor::of(executor);
}

Alerts::~Alerts() {
  net::Reactor::of(impl_->executor).end_tasks();
}

std::optional<std::string> Alerts::fault_of(const std::vector<AlertSettings>& settings) {
  try {
    for (const auto& each : settings) (void)AlertRegistry::make(each);
    return std::nullopt;
  } catch (const std::exception& fault) {
    return fault.what();
  }
}

void Alerts::start() {
  impl_->watchdog.start();
  impl_->turn();
}

void Alerts::change(std::vector<AlertSettings> settings, Sources sources) {
  impl_->book.change(std::move(settings), impl_->sources.now());
  impl_->sources = std::move(sources);
}

void Alerts::read_authorities() {
  impl_->book.read_authorities();
}

std::vector<std::string> Alerts::alert_ids() const {
  return impl_->book.alert_ids();
}

std::vector<AlertState> Alerts::retire(const std::vector<std::string>& alert_ids) {
  return impl_->book.retire(alert_ids, impl_->sources.now());
}

void Alerts::go_on(const std::vector<AlertState>& states) {
  impl_->book.go_on(states, impl_->sources.now());
}

std::vector<AlertFigures> Alerts::figures() const {
  return impl_->book.figures();
}

std::uint64_t Alerts::faults() const noexcept {
  return impl_->faults.count();
}

}  // namespace weir::admin
