#include "weir/upgrade/upgrade.hpp"

#include "upgrade/successor.hpp"

#include "weir/upgrade/permit_changes.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <iterator>
#include <utility>

#include <boost/asio/post.hpp>
#include <unistd.h>

namespace weir::upgrade {

Upgrade::Upgrade(net::Executor control, Callbacks callbacks, log::Log& log)
    : control_(control), callbacks_(std::move(callbacks)), log_(log), channel_(control), deadline_(control) {}

Upgrade::~Upgrade() {
  if (is_under_way()) (void)end_successor(report_.successor);
}

void Upgrade::begin(const Timeouts& bounds, Done done) {
  if (done) done_.push_back(std::move(done));
  bounds_ = bounds;
  note(UpgradeEvent::Begun);
}

void Upgrade::abandon() {
  if (is_under_way()) note(UpgradeEvent::Failed, "weir is stopping");
}

void Upgrade::note(UpgradeEvent event, std::string why) {
  const auto [next, act] = step(stage_, event);
  stage_ = next;
  perform(act, std::move(why));
}

void Upgrade::perform(UpgradeAction act, std::string why) {
  switch (act) {
    case UpgradeAction::None:
      return;
    case UpgradeAction::Start:
      return start();
    case UpgradeAction::Pause:
      paused_at_ = Clock::now();
      be_late_after(bounds_.pause, "it did not take over within upgrade_pause");
      return callbacks_.pause([this, attempt = attempt_] {
        net::asio::post(control_, [this, attempt] {
          if (attempt == attempt_) note(UpgradeEvent::Paused);
        });
      });
    case UpgradeAction::SendState:
      return send_state();
    case UpgradeAction::LetOpen:
      be_late_after(bounds_.pause - std::chrono::duration_cast<base::Duration>(Clock::now() - paused_at_),
                    "it did not start listening within upgrade_pause");
      if (send_message(channel_.native_handle(), "open")) return;
      return note(UpgradeEvent::Failed);
    case UpgradeAction::HandOver:
      return hand_over();
    case UpgradeAction::GiveUpAndResume:
      give_up(std::move(why));
      return callbacks_.resume();
    case UpgradeAction::GiveUp:
      return give_up(std::move(why));
  }
}

void Upgrade::start() {
  ++attempt_;
  report_ = {};
  if (::getpid() == 1) {
    // A weir that is process 1 of a container must not end. The kernel would then end all other processes of
    // the container.
    return note(UpgradeEvent::Failed,
                "weir is process 1 of a container, which stops with it; start another container");
  }
  auto ends = upgrade_channel();
  if (!ends) return note(UpgradeEvent::Failed, "no file descriptors are left");
  const auto started = start_successor(ends->second.get());
  if (!started) return note(UpgradeEvent::Failed, started.error().message);
  report_.successor = *started;
  log_.write_always(log::LogLevel::Info, "upgrade: started process " + std::to_string(*started));
  net::ErrorCode unwatched;
  channel_.assign(ends->first.get(), unwatched);
  if (unwatched) return note(UpgradeEvent::Failed, "weir cannot watch the channel: " + unwatched.message());
  static_cast<void>(ends->first.release());
  if (!send_listeners(channel_.native_handle())) return note(UpgradeEvent::Failed);
  be_late_after(bounds_.start, "it was not ready within upgrade_timeout");
  await_continue();
}

bool Upgrade::send_listeners(int channel) {
  if (!send_message(channel, "hello", lines_of(callbacks_.carried_state()))) return false;
  for (const auto& listener_set : callbacks_.listener_sockets())
    for (std::size_t at = 0; at < listener_set.sockets.size(); at += kMostDescriptors) {
      const auto last = std::min(at + kMostDescriptors, listener_set.sockets.size());
      const std::vector<int> some(listener_set.sockets.begin() + static_cast<std::ptrdiff_t>(at),
                                  listener_set.sockets.begin() + static_cast<std::ptrdiff_t>(last));
      if (!send_message(channel, listener_set.word, {listener_set.address}, some)) return false;
    }
  return send_message(channel, "inherited");
}

void Upgrade::await_continue() {
  channel_.async_wait(net::asio::posix::descriptor_base::wait_read, [this](const net::ErrorCode& error) {
    if (error) return;
    read_words();
    if (is_under_way()) await_continue();
  });
}

void Upgrade::read_words() {
  UpgradeMessage message;
  while (is_under_way()) {
    const auto arrival = receive_message(channel_.native_handle(), false, message);
    if (arrival == ReceiveResult::Nothing) return;
    if (arrival == ReceiveResult::End) return note(UpgradeEvent::Failed);
    handle(message);
  }
}

void Upgrade::handle(const UpgradeMessage& message) {
  if (message.word == "ready") return note(UpgradeEvent::Ready);
  if (message.word == "restored") {
    count_restored(message.lines);
    return note(UpgradeEvent::Restored);
  }
  // If the new process has already ended, the upgrade must fail here. Otherwise the service manager would get
  // the ID of a process that no longer exists.
  if (message.word == "serving") {
    alert_ids_ = message.lines;
    return note(has_ended(report_.successor) ? UpgradeEvent::Failed : UpgradeEvent::Serving);
  }
  note(UpgradeEvent::Failed, message.lines.empty() ? "it said \"" + message.word + "\"" : message.lines[0]);
}

// Reads the numbers of keys from the message "restored". If the message has no numbers, all keys were
// restored.
void Upgrade::count_restored(const std::vector<std::string>& lines) {
  std::uint64_t* const counts[] = {&report_.keys, &report_.changed, &report_.left_out};
  for (std::size_t i = 0; i < std::min(lines.size(), std::size(counts)); ++i)
    std::from_chars(lines[i].data(), lines[i].data() + lines[i].size(), *counts[i]);
}

// Starts the time limit `bound` of the present step; a later call replaces it. When the time has passed,
// first reads the messages that have already arrived, because they are not late. If the step is still not
// complete, the upgrade fails with the reason `at_what`.
void Upgrade::be_late_after(base::Duration bound, const char* at_what) {
  deadline_.expires_after(bound);
  deadline_.async_wait([this, at_what](const net::ErrorCode& error) {
    if (error || !is_under_way() || deadline_.expiry() > net::Timer::clock_type::now()) return;
    const auto before = stage_;
    read_words();
    if (is_under_way() && stage_ == before) note(UpgradeEvent::Failed, at_what);
  });
}

void Upgrade::send_state() {
  auto state = callbacks_.state();
  if (!state) return note(UpgradeEvent::Failed, state.error().message);
  report_.keys = state->keys;
  for (const auto& message : in_messages(std::move(state->held)))
    if (!send_message(channel_.native_handle(), "held", message)) return note(UpgradeEvent::Failed);
  if (!send_message(channel_.native_handle(), "state", {}, {state->file.get()})) note(UpgradeEvent::Failed);
}

// From here on, the new process is the main process. First reports this to the service manager, and then
// sends "over".
void Upgrade::hand_over() {
  deadline_.cancel();
  report_.paused = std::chrono::duration_cast<base::Duration>(Clock::now() - paused_at_);
  callbacks_.announce(report_.successor);
  if (!send_message(channel_.native_handle(), "over", callbacks_.alerts(alert_ids_)))
    log_.error("upgrade: the new process exited");
  callbacks_.hand_over(report_, net::OwnedDescriptor(channel_.release()));
  finish(report_);
}

void Upgrade::give_up(std::string why) {
  deadline_.cancel();
  std::string of;
  if (report_.successor != 0) {
    const auto ended = end_successor(report_.successor);
    if (why.empty()) why = ended;
    of = "process " + std::to_string(report_.successor) + ": ";
  }
  net::ErrorCode ignored;
  channel_.close(ignored);
  ++failed_;
  report_.fault = std::move(why);
  log_.write_always(log::LogLevel::Error, "upgrade: " + of + report_.fault + "; this process continues");
  finish(report_);
}

void Upgrade::finish(const UpgradeReport& report) {
  for (const auto& done : std::exchange(done_, {}))
    if (done) done(report);
}

}  // namespace weir::upgrade
