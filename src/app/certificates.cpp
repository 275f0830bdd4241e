#include "app/certificates.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

#include <sys/stat.h>

namespace weir::app {

namespace {

FileStamp stamp_of(const std::string& path) {
  constexpr std::int64_t kNanos = 1'000'000'000;
  struct ::stat found {};
  // Nothing else is opened: to open a pipe waits until somebody writes to it.
  if (::stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  return {.device = found.st_dev,
          .inode = found.st_ino,
          .modified_ns = found.st_mtim.tv_sec * kNanos + found.st_mtim.tv_nsec,
          .size = found.st_size};
}

std::string date_of(std::chrono::sys_seconds at) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(at));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%d-%02u-%02u", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  return text.data();
}

}  // namespace

ListenerCertificates::ListenerCertificates(net::TlsSettings settings,
                                           std::shared_ptr<net::TicketKeys> tickets)
    : settings_(std::move(settings)), tickets_(std::move(tickets)) {}

base::Result<ListenerCertificates> ListenerCertificates::read(const net::TlsSettings& settings,
                                                              const ListenerCertificates* older) {
  const bool goes_on = older != nullptr && older->settings_.ticket_rotation == settings.ticket_rotation;
  ListenerCertificates made(
      settings, goes_on ? older->tickets_ : std::make_shared<net::TicketKeys>(settings.ticket_rotation));
  if (auto read = made.look(); !read) return read.error();
  return made;
}

// The stamps come first: what is written while we read differs from them at the next look.
base::Result<bool> ListenerCertificates::look() {
  auto found = stamps();
  if (found == stamps_) return false;
  stamps_ = std::move(found);
  if (auto missing = missing_file()) return base::Error{"\"" + *missing + "\" is no file"};
  auto fresh = net::make_tls_context(settings_, tickets_);
  if (!fresh) return fresh.error();
  context_ = std::move(*fresh);
  return true;
}

std::optional<std::string> ListenerCertificates::missing_file() const {
  for (const auto& files : settings_.certificates)
    for (const auto* path : {&files.cert, &files.key, &files.ocsp})
      if (!path->empty() && stamp_of(*path) == FileStamp{}) return *path;
  if (!settings_.client_ca.empty() && stamp_of(settings_.client_ca) == FileStamp{})
    return settings_.client_ca;
  return std::nullopt;
}

std::vector<FileStamp> ListenerCertificates::stamps() const {
  std::vector<FileStamp> stamps;
  for (const auto& files : settings_.certificates)
    for (const auto* path : {&files.cert, &files.key, &files.ocsp}) stamps.push_back(stamp_of(*path));
  stamps.push_back(stamp_of(settings_.client_ca));
  return stamps;
}

base::Result<CertificateWatch::Shown> CertificateWatch::read(const net::ListenerSettings& settings,
                                                             std::optional<std::size_t> number) const {
  if (!settings.tls) return Shown{};
  const auto older = number ? watched_.find(*number) : watched_.end();
  auto read = ListenerCertificates::read(*settings.tls,
                                         older != watched_.end() ? &older->second.certificates : nullptr);
  if (!read) return read.error();
  return Shown{std::move(*read)};
}

void CertificateWatch::show(std::size_t number, const net::ListenerSettings& settings, Shown shown) {
  watched_.erase(number);
  if (!shown) return;
  const auto at = watched_.emplace(number, Watched{settings.address.to_string(), std::move(*shown)}).first;
  warn_of(at->second.certificates);
}

SSL_CTX* CertificateWatch::context(std::size_t number) const noexcept {
  const auto found = watched_.find(number);
  return found != watched_.end() ? found->second.certificates.context() : nullptr;
}

void CertificateWatch::look() {
  for (auto& [number, watched] : watched_) {
    const auto where = "TLS on " + watched.address;
    const auto changed = watched.certificates.look();
    if (!changed) {
      ++faulty_;
      log_.warning(where + ": files changed, the certificates stay as they were: " + changed.error().message);
    } else if (*changed) {
      ++renewed_;
      renew_(number, watched.certificates.context());
      log_.info(where + ": certificates read anew");
      warn_of(watched.certificates);
    }
  }
}

void CertificateWatch::look_every(base::Duration period) {
  if (period.count() == 0) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(period);
  timer_.async_wait([this, period](const net::ErrorCode& error) {
    if (error) return;
    look();
    look_every(period);
  });
}

admin::TlsFigures CertificateWatch::figures() const {
  admin::TlsFigures figures{.certificates = {}, .renewed = renewed_, .faulty = faulty_};
  for (const auto& [number, watched] : watched_) {
    const auto times = net::certificate_times(watched.certificates.context());
    for (std::size_t j = 0; j < times.size(); ++j) {
      const auto& files = watched.certificates.settings().certificates[j];
      auto stapled_until = times[j].stapled_until;
      if (!files.ocsp.empty() && !stapled_until)
        stapled_until.emplace();  // a response that is good for nothing
      figures.certificates.push_back({.listener = watched.address,
                                      .file = files.cert,
                                      .not_after = times[j].not_after,
                                      .stapled_until = stapled_until});
    }
  }
  return figures;
}

void CertificateWatch::warn_of(const ListenerCertificates& certificates) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto times = net::certificate_times(certificates.context());
  for (const auto& doubt : find_doubts(certificates.settings(), times, now)) log_.warning(doubt);
}

std::vector<std::string> find_doubts(const net::TlsSettings& settings,
                                     const std::vector<net::CertificateTimes>& times,
                                     std::chrono::sys_seconds now) {
  constexpr std::chrono::days kSoon{14};
  std::vector<std::string> doubts;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const auto& files = settings.certificates[i];
    const auto left = times[i].not_after - now;
    if (left < std::chrono::seconds(0))
      doubts.push_back("the certificate \"" + files.cert + "\" has expired: clients will refuse it");
    else if (left < kSoon)
      doubts.push_back("the certificate \"" + files.cert + "\" expires on " + date_of(times[i].not_after) +
                       " (UTC)");
    if (files.ocsp.empty()) continue;
    if (!times[i].stapled_until)
      doubts.push_back("the OCSP response \"" + files.ocsp +
                       "\" speaks of another certificate and is not stapled");
    else if (*times[i].stapled_until <= now)
      doubts.push_back("the OCSP response \"" + files.ocsp + "\" is out of date and is not stapled");
  }
  return doubts;
}

std::vector<std::string> find_doubts(const std::vector<net::ListenerSettings>& listeners,
                                     std::chrono::sys_seconds now) {
  std::vector<std::string> doubts;
  for (const auto& listener : listeners) {
    if (!listener.tls) continue;
    const auto shown = net::make_tls_context(*listener.tls);
    if (!shown) continue;
    for (auto& doubt : find_doubts(*listener.tls, net::certificate_times(shown->get()), now))
      doubts.push_back(std::move(doubt));
  }
  return doubts;
}

}  // namespace weir::app
