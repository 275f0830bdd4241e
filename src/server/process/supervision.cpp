#include "server/process/supervision.hpp"

#include <chrono>
#include <utility>

namespace weir::server {

namespace {

constexpr std::chrono::milliseconds kPollInterval{10};
// Time that weir needs after the drain to write the snapshot file and the last log lines.
constexpr std::chrono::seconds kTimeAfterDrain{60};

}  // namespace

Supervision::Supervision(net::Executor control, const NotifyEnvironment& environment, log::Log& log)
    : notify_(environment, [&log](const std::string& what) { log.warning(what); }),
      heartbeat_(control, [this] { notify_.alive(); }),
      watch_timer_(control) {}

void Supervision::start(std::vector<net::Executor> loops, std::function<bool()> accepts) {
  if (!notify_.is_on()) return;
  accepts_ = std::move(accepts);
  if (!accepts_()) notify_.status("waiting for Redis before accepting requests");
  await_ready();
  if (const auto watchdog = notify_.watchdog(); watchdog.count() > 0)
    heartbeat_.start(std::move(loops), watchdog / 2);
}

void Supervision::await_ready() {
  if (accepts_()) return ready();
  watch_timer_.expires_after(kPollInterval);
  watch_timer_.async_wait([this](const net::ErrorCode& error) {
    if (!error) await_ready();
  });
}

// Reports that a reload begins. Reports nothing while weir starts or stops, because the service manager
// already shows the start or stop.
void Supervision::reloading() {
  if (accepts_ && accepts_()) notify_.reloading();
}

void Supervision::ready() {
  ready("serving");
}

void Supervision::ready(const std::string& status) {
  if (accepts_ && accepts_()) notify_.ready(status);
}

void Supervision::stopping(base::Duration drain) {
  watch_timer_.cancel();
  heartbeat_.stop_watching_workers();
  notify_.stopping("completing open requests", drain + kTimeAfterDrain);
}

void Supervision::stopping_after(base::Duration delay, base::Duration drain) {
  watch_timer_.cancel();
  notify_.stopping("not ready any more; serving until drain_delay is over", delay + drain + kTimeAfterDrain);
}

void Supervision::hand_over(int process) {
  watch_timer_.cancel();
  heartbeat_.stop();
  accepts_ = nullptr;
  notify_.main_process(process);
}

}  // namespace weir::server
