#include "weir/acme/manager.hpp"

#include "weir/base/units.hpp"
#include "weir/net/file.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace weir::acme {

namespace {

constexpr std::chrono::seconds kRound{1};
// How long weir waits after it has published challenges, before the authority may check them. Each weir that
// shares the folder looks for new challenges once in kRound.
constexpr std::chrono::seconds kSpread = 2 * kRound;

SysTime now() {
  return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
}

std::string in_words(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string in_words(std::chrono::seconds time) {
  return base::to_readable(time);
}

// Removes all published challenges, at the beginning and at the end of an order.
class Published {
 public:
  explicit Published(const Folder& folder) : folder_(folder) { folder_.withdraw_all(); }
  ~Published() { folder_.withdraw_all(); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

 private:
  const Folder& folder_;
};

}  // namespace

Manager::Manager(std::shared_ptr<net::Challenges> challenges, Callbacks callbacks)
    : challenges_(std::move(challenges)), callbacks_(std::move(callbacks)) {}

Manager::~Manager() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    stop_.request_stop();
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Manager::configure(std::optional<Settings> settings, std::vector<Names> certificates) {
  std::shared_ptr<const Work> work;
  if (settings && !certificates.empty())
    work = std::make_shared<const Work>(Work{std::move(*settings), std::move(certificates)});
  {
    const std::lock_guard lock(mutex_);
    if (work == work_ || (work && work_ && *work == *work_)) return;
    // The thread starts before the new work is stored. If it cannot start, the next reload thus tries again.
    if (work && !thread_.joinable()) thread_ = std::thread([this] { run(); });
    work_ = std::move(work);
    stop_.request_stop();
    stop_ = std::stop_source();
  }
  wake_.notify_all();
}

Figures Manager::figures() const noexcept {
  return {.ok = ok_.load(), .failed = failed_.load(), .placeholders = placeholders_.load()};
}

void Manager::run() {
  std::shared_ptr<const Work> last;
  std::unique_lock lock(mutex_);
  while (!ended_) {
    const auto work = work_;
    const auto stop = stop_.get_token();
    lock.unlock();
    if (work != last) known_.clear();  // other names or another authority, so weir reads the files again
    last = work;
    try {
      if (work)
        renew(*work, stop);
      else
        forget_challenges();
    } catch (const std::exception& error) {
      complain(error.what());
    }
    lock.lock();
    if (!ended_ && stop_.get_token() == stop) wake_.wait_for(lock, kRound);
  }
  forget_challenges();
}

void Manager::forget_challenges() {
  shown_.clear();
  challenges_->set({});
}

void Manager::complain(const std::string& what) {
  if (std::exchange(complaint_, what) != what) callbacks_.warning("acme: " + what + "; weir tries again");
}

void Manager::renew(const Work& work, const std::stop_token& stop) {
  const Folder folder(work.settings.folder);
  if (const auto made = folder.make(); !made) return complain(made.error().message);
  may_ask_ = true;
  std::uint64_t placeholders = 0;
  for (const auto& names : work.certificates) {
    if (stop.stop_requested()) return;
    refresh_challenges(folder);
    check(work, names, stop);
    if (known_[certificate_file(work.settings.folder, names)].info.is_placeholder) ++placeholders;
  }
  placeholders_ = placeholders;
}

// Makes the workers answer all challenges in the folder, whether this weir or another one has published them.
void Manager::refresh_challenges(const Folder& folder) {
  auto found = folder.challenges();
  if (found == shown_) return;
  net::Challenges::Pending pending;
  for (const auto& each : found) {
    if (each.kind == ChallengeKind::Http01) {
      pending.texts.emplace(each.token, each.authorization);
      continue;
    }
    const auto pem = make_challenge_certificate(each.name, each.authorization);
    auto context =
        pem ? net::make_challenge_context(*pem) : base::Result<net::Challenges::Context>(pem.error());
    if (context)
      pending.contexts.emplace(each.name, std::move(*context));
    else
      complain(context.error().message);
  }
  challenges_->set(std::move(pending));
  shown_ = std::move(found);
}

// Reads the certificate's file if it has changed.
void Manager::read(const Work& work, const Names& names, Known& known) {
  const auto file = certificate_file(work.settings.folder, names);
  const auto stamp = net::stamp_of(file);
  if (known.stamp == stamp) return;
  known = Known{.stamp = stamp};
  callbacks_.changed();
  const auto text = net::read_file(file);
  const auto info = text ? read_certificate(*text) : base::Result<CertificateInfo>(text.error());
  if (!info) return;
  known.info = *info;
  const bool fits =
      !info->is_placeholder && info->names == sorted(names) && directory_in(*text) == work.settings.directory;
  if (fits) known.renew_at = renewal_time(info->validity, std::nullopt, 0);
}

void Manager::ask_when(const Settings& settings, Known& known, const std::stop_token& stop) {
  const auto asked = ask_window(settings, known.info.ari_id, stop);
  known.ask_at = now() + window_pause(asked.retry_after);
  if (!asked.fault.empty()) return complain("cannot ask when to renew: " + asked.fault);
  if (!asked.window) return;
  known.renew_at =
      renewal_time(known.info.validity, asked.window, std::uniform_real_distribution<double>(0, 1)(chance_));
}

void Manager::check(const Work& work, const Names& names, const std::stop_token& stop) {
  const Folder folder(work.settings.folder);
  auto& known = known_[certificate_file(work.settings.folder, names)];
  read(work, names, known);
  const bool is_signed = known.renew_at != SysTime();
  if (is_signed && !known.info.ari_id.empty() && now() >= known.ask_at && std::exchange(may_ask_, false))
    ask_when(work.settings, known, stop);
  // After an order succeeded, weir waits even if the certificate is for other names or from another
  // authority. Otherwise two weirs that share a folder but not the settings would make each other order again
  // and again.
  const bool has_certificate = !known.info.names.empty() && !known.info.is_placeholder;
  const auto must_wait = [&] {
    const auto retry = this->retry(work.settings, names);
    return retry && is_pause(retry->next, now(), work.settings.retry) &&
           (retry->failures != 0 || has_certificate);
  };
  if (now() < known.renew_at || must_wait()) return;
  const auto lock = folder.lock();
  if (!lock) return complain(lock.error().message);
  if (!*lock) {
    if (!std::exchange(known.waits, true))
      callbacks_.info("acme: another weir that shares the folder is ordering; waiting for it before " +
                      in_words(names));
    return;
  }
  // another weir may have ordered the certificate, or failed to do so, since this weir read the file
  if (net::stamp_of(certificate_file(work.settings.folder, names)) != known.stamp || must_wait()) return;
  // The authority counts each certificate that it issues, also those that weir cannot store.
  if (const auto room = folder.check_room(); !room)
    return note_failure(work.settings, names, room.error().message, std::nullopt);
  const auto account = folder.account();
  if (!account) return complain(account.error().message);
  Client client(work.settings, *account, stop);
  if (const auto done = order(work.settings, names, client, *account, stop); !done) {
    if (!stop.stop_requested())
      note_failure(work.settings, names, done.error().message, client.wanted_pause());
    return;
  }
  ++ok_;
  complaint_.clear();
  read(work, names, known);
  keep_retry(work.settings, names, {0, now() + pause_after_success(known.info.validity)});
  callbacks_.info("acme: has a new certificate for " + in_words(names) + ", valid for " +
                  in_words(known.info.validity.not_after - now()));
}

// Orders a certificate and stores it in the folder. REQUIRES the folder's lock.
base::Result<void> Manager::order(const Settings& settings, const Names& names, Client& client,
                                  const Key& account, const std::stop_token& stop) {
  const Folder folder(settings.folder);
  callbacks_.info("acme: ordering a certificate for " + in_words(names) + " from " + settings.directory);
  const auto key = make_key();
  if (!key) return key.error();
  const auto& info = known_[certificate_file(settings.folder, names)].info;
  base::Result<std::string> chain = base::Error{};
  {
    const Published published(folder);
    chain = client.order(names, info.is_placeholder ? std::string() : info.ari_id, *key,
                         [&](const std::vector<Client::ToAnswer>& all) -> base::Result<void> {
                           for (const auto& each : all) {
                             const PendingChallenge challenge{each.token, settings.challenge, each.name,
                                                              key_authorization(account, each.token)};
                             if (auto done = folder.publish(challenge); !done) return done;
                           }
                           refresh_challenges(folder);
                           sleep_for(kSpread, stop);
                           return {};
                         });
  }
  refresh_challenges(folder);
  if (!chain) return chain.error();
  return folder.keep(names, settings.directory, to_pem(*key) + *chain);
}

void Manager::note_failure(const Settings& settings, const Names& names, const std::string& why,
                           std::optional<std::chrono::seconds> wanted_pause) {
  ++failed_;
  const auto before = retry(settings, names);
  const unsigned failures = before ? before->failures + 1 : 1;
  auto pause = retry_pause(settings.retry, failures);
  if (wanted_pause) pause = std::max(pause, std::min<std::chrono::seconds>(*wanted_pause, kLongestWanted));
  callbacks_.warning("acme: cannot order a certificate for " + in_words(names) + ": " + why +
                     "; weir keeps the present one and tries again in " + in_words(pause));
  keep_retry(settings, names, {failures, now() + pause});
}

// Returns when weir may order this certificate again; nullopt if there was no order. Other weirs may have
// written a later time into the folder, so the later time of both applies.
std::optional<Retry> Manager::retry(const Settings& settings, const Names& names) {
  const auto& unkept = known_[certificate_file(settings.folder, names)].unkept;
  auto kept = Folder(settings.folder).retry(names, settings.directory);
  return unkept && (!kept || kept->next < unkept->next) ? unkept : std::move(kept);
}

// Stores in the folder when weir may order again. If the folder cannot be written, for example because the
// disk is full, remembers it in memory. Otherwise weir would order once a second.
void Manager::keep_retry(const Settings& settings, const Names& names, const Retry& retry) {
  auto& unkept = known_[certificate_file(settings.folder, names)].unkept;
  unkept.reset();
  const auto kept = Folder(settings.folder).keep_retry(names, settings.directory, retry);
  if (kept) return;
  unkept = retry;
  complain(kept.error().message);
}

}  // namespace weir::acme
