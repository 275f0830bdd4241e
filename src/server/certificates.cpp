#include "weir/server/certificates.hpp"

#include "weir/net/revocation_lists.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <utility>

namespace weir::server {

namespace {

std::string date_of(std::chrono::sys_seconds at) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(at));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%d-%02u-%02u", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
  return text.data();
}

std::string why_hidden(const net::TlsSettings& settings, const net::CertificateFiles& files,
                       const net::HiddenReason& hidden) {
  const auto never = "the certificate \"" + files.cert + "\" can never be used: ";
  if (!hidden.behind)
    return never +
           "it contains no host name that a client could request; put it first to make it the default";
  return never + "\"" + settings.certificates[*hidden.behind].cert +
         "\" before it has the same names and key type; remove one of the two";
}

}  // namespace

ListenerCertificates::ListenerCertificates(net::TlsSettings settings,
                                           std::shared_ptr<net::TicketKeys> tickets, Challenges challenges)
    : settings_(std::move(settings)), tickets_(std::move(tickets)), challenges_(std::move(challenges)) {}

base::Result<ListenerCertificates> ListenerCertificates::read(const net::TlsSettings& settings,
                                                              const ListenerCertificates* older,
                                                              Challenges challenges) {
  const bool is_current = older != nullptr && older->settings_.ticket_rotation == settings.ticket_rotation;
  ListenerCertificates made(
      settings, is_current ? older->tickets_ : std::make_shared<net::TicketKeys>(settings.ticket_rotation),
      std::move(challenges));
  if (auto read = made.reread(); !read) return read.error();
  return made;
}

// Reads the files' stamps before the files. So if a file is written during the reading, the next call finds
// another stamp.
base::Result<bool> ListenerCertificates::reread() {
  auto found = stamps();
  if (found == stamps_) return false;
  stamps_ = std::move(found);
  auto fresh = net::make_tls_context(settings_, tickets_);
  if (!fresh) return fresh.error();
  if (challenges_) net::answer_challenges(fresh->get(), challenges_);
  // Reads the context's certificate store now, because workers do not use the context yet. A later reading
  // would need a lock.
  revocations_end_ = settings_.client_crl.empty() ? std::nullopt : net::revocation_lists_end(fresh->get());
  context_ = std::move(*fresh);
  return true;
}

net::FileStamps ListenerCertificates::stamps() const {
  net::FileStamps stamps;
  for (const auto& files : settings_.certificates)
    for (const auto* path : {&files.cert, &files.key, &files.ocsp}) stamps.push_back(net::stamp_of(*path));
  stamps.push_back(net::stamp_of(settings_.client_ca));
  stamps.push_back(net::stamp_of(settings_.client_crl));
  return stamps;
}

base::Result<CertificateWatch::Shown> CertificateWatch::read(const net::ListenerSettings& settings,
                                                             std::optional<std::size_t> number) const {
  if (!settings.tls) return Shown{};
  const auto older = number ? watched_.find(*number) : watched_.end();
  auto read = ListenerCertificates::read(
      *settings.tls, older != watched_.end() ? &older->second.certificates : nullptr, challenges_);
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

void CertificateWatch::reread() {
  for (auto& [number, watched] : watched_) {
    const auto where = "TLS on " + watched.address;
    const auto changed = watched.certificates.reread();
    if (!changed) {
      ++faulty_;
      log_.warning(where + ": cannot load the changed files; weir keeps the previous certificates: " +
                   changed.error().message);
    } else if (*changed) {
      ++renewed_;
      renew_(number, watched.certificates.context());
      log_.info(where + ": reloaded the certificates");
      warn_of(watched.certificates);
    }
  }
}

void CertificateWatch::check_every(base::Duration period) {
  if (period.count() == 0) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(period);
  timer_.async_wait([this, period](const net::ErrorCode& error) {
    if (error) return;
    reread();
    check_every(period);
  });
}

admin::TlsFigures CertificateWatch::figures() const {
  admin::TlsFigures figures{.certificates = {}, .revocations = {}, .renewed = renewed_, .faulty = faulty_};
  for (const auto& [number, watched] : watched_) {
    if (const auto end = watched.certificates.revocations_end())
      figures.revocations.push_back({watched.address, watched.certificates.settings().client_crl, *end});
    const auto states = net::certificate_states(watched.certificates.context());
    for (std::size_t j = 0; j < states.size(); ++j) {
      const auto& files = watched.certificates.settings().certificates[j];
      auto stapled_until = states[j].stapled_until;
      // The epoch means that the OCSP response cannot be used.
      if (!files.ocsp.empty() && !stapled_until) stapled_until.emplace();
      figures.certificates.push_back({.listener = watched.address,
                                      .file = files.cert,
                                      .not_after = states[j].not_after,
                                      .stapled_until = stapled_until});
    }
  }
  return figures;
}

void CertificateWatch::warn_of(const ListenerCertificates& certificates) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const auto states = net::certificate_states(certificates.context());
  for (const auto& warning : find_warnings(certificates.settings(), states, now)) log_.warning(warning);
  if (const auto warning = warn_of_revocations(certificates.settings(), certificates.revocations_end(), now))
    log_.warning(*warning);
}

std::optional<std::string> warn_of_expiry(const std::string& file, const std::string& who,
                                          std::chrono::sys_seconds not_after, std::chrono::sys_seconds now) {
  constexpr std::chrono::days kSoon{14};
  const auto left = not_after - now;
  if (left >= kSoon) return std::nullopt;
  auto warning = "the certificate \"" + file + "\" ";
  if (left < std::chrono::seconds(0)) return warning + "has expired; " + who + " will reject it";
  return warning + "expires on " + date_of(not_after) + " (UTC)";
}

std::optional<std::string> warn_of_revocations(const net::TlsSettings& settings,
                                               std::optional<std::chrono::sys_seconds> end,
                                               std::chrono::sys_seconds now) {
  if (settings.client_crl.empty() || !end || *end > now) return std::nullopt;
  return "the revocation list in \"" + settings.client_crl + "\" expired on " + date_of(*end) +
         " (UTC); weir rejects all clients of its authority until the file has a newer list";
}

std::vector<std::string> find_warnings(const net::TlsSettings& settings,
                                       const std::vector<net::CertificateState>& states,
                                       std::chrono::sys_seconds now) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < states.size(); ++i) {
    const auto& files = settings.certificates[i];
    if (states[i].hidden) warnings.push_back(why_hidden(settings, files, *states[i].hidden));
    if (auto warning = warn_of_expiry(files.cert, "clients", states[i].not_after, now))
      warnings.push_back(std::move(*warning));
    if (files.ocsp.empty()) continue;
    if (!states[i].stapled_until)
      warnings.push_back("the OCSP response \"" + files.ocsp +
                         "\" is for another certificate and is not stapled");
    else if (*states[i].stapled_until <= now)
      warnings.push_back("the OCSP response \"" + files.ocsp + "\" is out of date and is not stapled");
  }
  return warnings;
}

std::vector<std::string> find_warnings(const std::vector<net::ListenerSettings>& listeners,
                                       std::chrono::sys_seconds now) {
  std::vector<std::string> warnings;
  for (const auto& listener : listeners) {
    if (!listener.tls) continue;
    const auto shown = net::make_tls_context(*listener.tls);
    if (!shown) continue;
    for (auto& warning : find_warnings(*listener.tls, net::certificate_states(shown->get()), now))
      warnings.push_back(std::move(warning));
    if (auto warning = warn_of_revocations(*listener.tls, net::revocation_lists_end(shown->get()), now))
      warnings.push_back(std::move(*warning));
  }
  return warnings;
}

}  // namespace weir::server
