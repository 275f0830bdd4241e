#include "server/token_key_fetcher.hpp"

#include "weir/fetch/fetch.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

namespace weir::server {

namespace {

using SteadyClock = std::chrono::steady_clock;

// Wakes the thread of a URL. A worker may call ring() after the thread has ended, so workers and the thread
// share the ownership of this object.
class WakeSignal {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    is_raised_ = true;
    changed_.notify_one();
  }
  // Waits until ring() is called, `until` has passed or a stop is requested.
  void wait(const std::stop_token& stop, SteadyClock::time_point until) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, stop, until, [this] { return is_raised_; });
    is_raised_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_raised_ = false;  // guarded by mutex_
};

std::string in_words(std::size_t keys) {
  return std::to_string(keys) + (keys == 1 ? " key" : " keys");
}

}  // namespace

// The thread of one URL, and the counts of its fetches.
class TokenKeyFetcher::Job {
 public:
  Job(const TokenKeyFetcher& fetcher, policy::KeyFetchSettings settings,
      std::shared_ptr<policy::FetchedKeys> keys)
      : fetcher_(fetcher), keys_(std::move(keys)), settings_(std::move(settings)) {
    keys_->on_want([bell = wake_signal_] { bell->ring(); });
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  }
  ~Job() { keys_->on_want({}); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void change(const policy::KeyFetchSettings& settings) {
    {
      const std::lock_guard lock(mutex_);
      if (settings_ == settings) return;
      settings_ = settings;
    }
    wake_signal_->ring();
  }
  [[nodiscard]] const std::shared_ptr<policy::FetchedKeys>& keys() const noexcept { return keys_; }
  [[nodiscard]] policy::KeyFetchSettings settings() const {
    const std::lock_guard lock(mutex_);
    return settings_;
  }
  [[nodiscard]] admin::TokenKeyFigures figures() const {
    const std::lock_guard lock(mutex_);
    admin::TokenKeyFigures figures{.url = settings_.url,
                                   .fetched = fetched_,
                                   .failed = failed_,
                                   .keys = count_,
                                   .waiting = keys_->waiting(),
                                   .fault = fault_};
    if (last_) figures.age = std::chrono::duration_cast<base::Duration>(SteadyClock::now() - *last_);
    return figures;
  }

 private:
  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const auto begun = SteadyClock::now();
      try {
        fetch_once(stop);
      } catch (const std::bad_alloc&) {
        keys_->fail();
      }
      wait_for_next(stop, begun);
    }
  }
  void fetch_once(const std::stop_token& stop) {
    const auto settings = this->settings();
    keys_->begin_fetch();
    const auto result = fetch_set(settings, stop);
    if (stop.stop_requested()) return keys_->fail();
    note(result, settings);
    fetcher_.on_fetched_();
  }
  // Fetches the key set and stores it. Returns the number of its keys.
  base::Result<std::size_t> fetch_set(const policy::KeyFetchSettings& settings, const std::stop_token& stop) {
    const auto answer = fetch::request({.url = settings.url,
                                        .fields = {{"Accept", "application/jwk-set+json, application/json"}},
                                        .ca_file = settings.ca_file,
                                        .timeout = settings.timeout,
                                        .max_bytes = settings.max_size,
                                        .allow_http = settings.allow_http},
                                       stop);
    if (answer && answer->status == 200) {
      auto stored = keys_->store(answer->body);
      return stored ? stored : base::Error{"the answer " + stored.error().message};
    }
    keys_->fail();
    if (!answer) return answer.error();
    const auto target = answer->find("Location");
    return base::Error{"the answer has status " + std::to_string(answer->status) +
                       (target.empty() ? "" : " and redirects to " + std::string(target))};
  }
  // Logs the first success, the first success after a failure, the first of several failures in a row, and
  // each change of the number of keys.
  void note(const base::Result<std::size_t>& result, const policy::KeyFetchSettings& settings) {
    const std::lock_guard lock(mutex_);
    const bool failed_before = !fault_.empty();
    fault_ = result ? "" : result.error().message;
    if (result) {
      const bool changed = !last_ || count_ != *result;
      ++fetched_;
      count_ = *result;
      last_ = SteadyClock::now();
      if (changed || failed_before)
        fetcher_.log_.info("tokens: fetched " + in_words(count_) + " from " + settings.url);
      return;
    }
    ++failed_;
    if (failed_before) return;
    fetcher_.log_.warning("tokens: cannot fetch the keys at " + settings.url + ": " + fault_ + "; weir " +
                          (last_ ? "keeps the previous keys" : "answers 503 to requests that need them") +
                          ", and tries again");
  }
  // Waits until `refresh` has passed since the fetch began. After a failure, or if a request needs an unknown
  // key, waits only for `cooldown`.
  void wait_for_next(const std::stop_token& stop, SteadyClock::time_point begun) {
    while (!stop.stop_requested()) {
      const auto settings = this->settings();
      const bool soon = keys_->is_failing() || keys_->is_wanted();
      const auto due = begun + (soon ? settings.cooldown : settings.refresh);
      if (SteadyClock::now() >= due) return;
      wake_signal_->wait(stop, due);
    }
  }

  const TokenKeyFetcher& fetcher_;
  const std::shared_ptr<policy::FetchedKeys> keys_;
  const std::shared_ptr<WakeSignal> wake_signal_ = std::make_shared<WakeSignal>();
  mutable std::mutex mutex_;  // guards the members up to fault_
  policy::KeyFetchSettings settings_;
  std::uint64_t fetched_ = 0, failed_ = 0;
  std::size_t count_ = 0;                        // number of the present keys
  std::optional<SteadyClock::time_point> last_;  // the end of the last successful fetch
  std::string fault_;                            // why the last fetch failed; empty if it succeeded
  std::jthread thread_;                          // must be the last member, because it uses the other members
};

TokenKeyFetcher::TokenKeyFetcher(log::Log& log, std::function<void()> on_fetched)
    : log_(log), on_fetched_(std::move(on_fetched)) {}

TokenKeyFetcher::~TokenKeyFetcher() = default;

void TokenKeyFetcher::share_keys(policy::ClientSettings& client) const {
  if (!client.tokens) return;
  policy::TokenVerifier::KeysByUrl present;
  for (const auto& [url, job] : jobs_) present.emplace(url, std::pair(job->settings(), job->keys()));
  client.tokens->share_keys(present);
}

void TokenKeyFetcher::watch(const policy::ClientSettings& client) {
  const auto wanted = client.tokens ? client.tokens->fetched() : policy::TokenVerifier::KeysByUrl{};
  std::erase_if(jobs_, [&](const auto& job) { return !wanted.contains(job.first); });
  for (const auto& [url, source] : wanted) {
    const auto& [settings, keys] = source;
    if (const auto found = jobs_.find(url); found != jobs_.end())
      found->second->change(settings);
    else
      jobs_.emplace(url, std::make_unique<Job>(*this, settings, keys));
  }
}

std::vector<admin::TokenKeyFigures> TokenKeyFetcher::figures() const {
  std::vector<admin::TokenKeyFigures> all;
  for (const auto& [url, job] : jobs_) all.push_back(job->figures());
  return all;
}

}  // namespace weir::server
