// Reads [acme], and `acme` of a listener's certificate.
#include "config/read/settings_sections.hpp"

#include "weir/acme/jws.hpp"
#include "weir/fetch/fetch.hpp"
#include "weir/net/tls_files.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::size_t kMostNames = 100;  // the most names of a certificate; public authorities accept no more

void check_email(const TableReader& table, const std::string& email) {
  const auto at = email.find('@');
  const bool plain = std::none_of(email.begin(), email.end(), [](unsigned char c) {
    return c <= ' ' || c >= 0x7f || c == ',' || c == '?' || c == '"';
  });
  if (!plain || at == 0 || at == std::string::npos || at + 1 == email.size() || email.starts_with("mailto:"))
    table.mistake("email",
                  "found " + in_quotes(email) + "; expected one address such as \"admin@example.com\"");
}

std::string read_ca(const TableReader& table, ReadContext& context) {
  auto file = readable_file(table, "ca", context);
  if (holds_something(file))
    if (const auto fault = net::fault_of_certificate(file)) table.mistake("ca", fault->message);
  return file;
}

acme::ExternalAccount read_external_account(const TableReader& table) {
  acme::ExternalAccount account{.kid = table.text("kid"), .hmac_key = {}};
  const auto secret = acme::from_base64url(table.text("hmac_key"));
  if (table.has("kid") && account.kid.empty())
    table.mistake("kid", "found an empty text; expected the account's name");
  if (table.has("hmac_key") && (!secret || secret->empty()))
    table.mistake("hmac_key",
                  "found a text that is not base64url; expected the secret as the authority shows it");
  account.hmac_key = secret.value_or("");
  return account;
}

// Reports a mistake if another certificate with the same first name has other names. Both would be stored in
// the same file.
void check_file(const TableReader& table, const acme::Names& names, ReadContext& context) {
  const auto [at, is_new] = context.acme_names.emplace(names.front(), names);
  if (is_new || at->second == names) return;
  table.mistake_in("acme", 0,
                   "found " + in_quotes(names.front()) +
                       " first also in another list with other names; expected the same list, or another "
                       "first name, because the first name is the name of the certificate's file");
}

}  // namespace

std::optional<acme::Settings> read_acme(const TableReader& root, ReadContext& context) {
  context.acme_is_set = root.mentions("acme");
  if (!root.has("acme")) return std::nullopt;
  const auto table = root.table("acme", schema::kAcme);
  acme::Settings settings;
  settings.directory = table.text("directory");
  if (auto fault = fetch::fault_in_url(settings.directory, false); !fault.empty())
    table.mistake("directory", "found " + in_quotes(settings.directory) + "; " + fault);
  settings.folder = resolve(context, table.text("folder"));
  if (table.has("email")) {
    settings.email = table.text("email");
    check_email(table, settings.email);
  }
  if (table.has("accept_terms") && !table.boolean("accept_terms"))
    table.mistake(
        "accept_terms",
        "found false; expected true, which says that you accept the authority's terms of service, or "
        "remove the table [acme]");
  settings.challenge = table.choice<acme::ChallengeKind>("challenge");
  settings.ca = read_ca(table, context);
  if (table.has("external_account"))
    settings.external_account =
        read_external_account(table.table("external_account", schema::kExternalAccount));
  settings.retry = table.deadline("retry");
  context.acme_folder = settings.folder;
  context.lines["[acme]"] = table.line();
  return settings;
}

net::CertificateFiles read_acme_certificate(const TableReader& table, ReadContext& context) {
  for (const char* key : {"cert", "key", "ocsp"})
    if (table.has(key))
      table.mistake(key,
                    "found beside acme; expected either acme, with which weir orders the certificate, or "
                    "cert and key");
  net::CertificateFiles files{.cert = {}, .key = {}};
  files.names = table.texts("acme");
  if (files.names.empty() || files.names.size() > kMostNames) {
    table.mistake("acme", "found " + std::to_string(files.names.size()) + " names; expected 1 to " +
                              std::to_string(kMostNames) + " host names");
    return files;
  }
  for (std::size_t i = 0; i < files.names.size(); ++i) {
    const auto& name = files.names[i];
    if (const auto fault = acme::fault_in_name(name); !fault.empty())
      table.mistake_in("acme", i, in_quotes(name) + " " + fault);
    else if (std::find(files.names.begin(), files.names.begin() + static_cast<std::ptrdiff_t>(i), name) !=
             files.names.begin() + static_cast<std::ptrdiff_t>(i))
      table.mistake_in("acme", i, "found " + in_quotes(name) + " a second time");
  }
  if (!context.acme_is_set)
    table.mistake("acme", "found without the table [acme]; expected [acme] with accept_terms = true");
  check_file(table, files.names, context);
  files.cert = files.key = acme::certificate_file(context.acme_folder, files.names);
  return files;
}

std::vector<acme::Names> acme_certificates(const Settings& settings) {
  std::vector<acme::Names> all;
  for (const auto& listener : settings.listeners) {
    if (!listener.tls) continue;
    for (const auto& files : listener.tls->certificates)
      if (!files.names.empty() && std::find(all.begin(), all.end(), files.names) == all.end())
        all.push_back(files.names);
  }
  return all;
}

}  // namespace weir::config
