#include "weir/admin/alerts.hpp"

#include "admin/alert_book.hpp"
#include "admin/webhook.hpp"

#include <random>
#include <utility>

namespace weir::admin {

namespace {

constexpr std::chrono::seconds kLook{1};

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
        post(on, watchdog),
        book(sources.version, say) {
    book.change(std::move(settings), {});
  }

  void look();
  net::Task<void> keep_posting();
  net::Task<void> try_to_post(std::shared_ptr<Alert> alert, std::string body);

  net::Executor executor;
  Sources sources;
  std::function<void(const std::string&)> say;
  net::Timer look_timer;
  net::Timer post_timer;
  net::Watchdog watchdog;
  Post post;
  AlertBook book;
  std::mt19937_64 random{std::random_device{}()};
};

void Alerts::Impl::look() {
  book.look(sources, sources.now());
  look_timer.expires_after(kLook);
  look_timer.async_wait([this](const net::ErrorCode& error) {
    if (!error) look();
  });
}

// One after another: whoever waits for a receiver that is slow waits for one timeout of it.
net::Task<void> Alerts::Impl::keep_posting() {
  for (;;) {
    post_timer.expires_after(kLook);
    const auto ended = co_await net::Expiry(post_timer);
    if (ended) co_return;
    const auto all = book.speakers();  // they may change meanwhile
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
  auto& delivery = alert->delivery;
  const bool was_overdue = delivery.is_overdue();
  const auto came_of_it =
      end.fault.empty() ? delivery.sent() : delivery.failed(end.hopeless, sources.now(), random());
  auto& figures = *alert->figures;
  if (came_of_it == End::Sent) ++figures.posted;
  if (came_of_it == End::Again) ++figures.retried;
  if (came_of_it == End::Sent) co_return;
  if (!was_overdue && (came_of_it == End::GivenUp || delivery.is_overdue())) ++figures.failed;
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
    for (const auto& each : settings) (void)AlertBook::make(each);
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
  impl_->book.change(std::move(settings), impl_->sources.now());
  impl_->sources = std::move(sources);
}

std::vector<AlertFigures> Alerts::figures() const {
  return impl_->book.figures();
}

}  // namespace weir::admin
