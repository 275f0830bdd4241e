// Reads the keys of a listener that answers questions, and the conditions on the values of questions.
#include "config/read/settings_sections.hpp"

#include "weir/base/units.hpp"

#include <algorithm>
#include <chrono>

namespace weir::config {

namespace {

// Reports a mistake about a key that this listener does not use. `where`: the setting of the listeners that
// use the key, such as serves = "rls".
void refuse_key(const TableReader& table, const char* key, const std::string& where) {
  table.mistake(key, "only a listener with " + where + " uses this; expected " + where +
                         " beside it, or remove this key");
}

// Returns true if every client of the listener must show a certificate.
bool requires_certificates(const net::ListenerSettings& listener) {
  return listener.tls && !listener.tls->client_ca.empty() &&
         listener.tls->client_auth == net::ClientAuth::Require;
}

// Reads `token`. A listener that other machines can reach must require a token or a certificate, because
// anybody who can ask can use up the limits of others.
void read_ask_token(const TableReader& table, net::ListenerSettings& listener) {
  listener.ask.token = read_token(table, listener.address);
  const bool reachable = table.has("address") && !is_loopback(listener.address);
  if (reachable && listener.ask.token.empty() && !requires_certificates(listener))
    table.missing("token", "a token, because " + listener.address.to_string() +
                               " can be reached from other machines: set token = \"${WEIR_ASK_TOKEN}\", or "
                               "demand certificates with tls = { client_ca = \"ca.crt\" }, or listen on "
                               "address = \"127.0.0.1:" +
                               std::to_string(listener.address.port) + "\" or \"unix:/path\"");
}

// Reads `permit_ttl`. It has a maximum, because each open permit keeps in memory the configuration under
// which it was granted, even after a reload.
void read_permit_ttl(const TableReader& table, net::AskOptions& ask) {
  constexpr base::Duration kMost = std::chrono::hours(1);
  ask.permit_ttl = table.deadline("permit_ttl");
  if (ask.permit_ttl > kMost)
    table.mistake("permit_ttl", "found " + in_quotes(base::to_string(ask.permit_ttl)) +
                                    "; expected at most \"1h\", because a permit keeps memory until then");
}

}  // namespace

void read_ask(const TableReader& table, net::ListenerSettings& listener, ReadContext& context) {
  using net::Serves;
  const bool misspelt = !table.has("serves") && (table.mentions("serves") || table.misspells("serves"));
  listener.serves = table.choice<Serves>("serves");
  (listener.serves == Serves::Proxy && !misspelt ? context.proxies : context.answers) = true;
  if (misspelt) return;
  auto& ask = listener.ask;
  read_permit_ttl(table, ask);
  ask.max_permits = static_cast<std::size_t>(table.whole("max_permits"));
  ask.together = table.text("descriptors") == "together";
  const std::string decide = "serves = \"decide\"";
  const std::string rls = "serves = \"rls\"";
  if (listener.serves != Serves::Proxy)
    read_ask_token(table, listener);
  else if (table.mentions("token"))
    refuse_key(table, "token", decide + " or " + rls);
  for (const char* key : {"permit_ttl", "max_permits"})
    if (listener.serves != Serves::Decide && table.has(key)) refuse_key(table, key, decide);
  if (listener.serves != Serves::Rls && table.has("descriptors")) refuse_key(table, "descriptors", rls);
}

void read_question_conditions(const TableReader& table, const ReadContext& context, policy::Match& match) {
  match.domains = table.texts("domains");
  if (table.has("domains") && match.domains.empty())
    table.mistake("domains", "found none; expected domains of questions such as \"edge\"");
  read_named(table, "descriptor", NameKind::Parameter, match.descriptor);
  for (auto& [key, text] : match.descriptor)
    if (text.describe() == "*")
      text = policy::TextMatch::present();
    else if (text.describe().empty())
      table.mistake("descriptor", "found no value for " + in_quotes(key) +
                                      ", but an empty value counts as missing, so the condition never "
                                      "holds; expected a value, or \"*\" for any");
  if (context.in_rules) return;
  for (const char* key : {"domains", "descriptor"})
    if (table.has(key))
      table.mistake(key,
                    "found in a [[route]], but only questions have descriptors and a domain, and they need "
                    "no route; expected it in a [[rule]]");
}

void check_questions(const TableReader& table, const policy::Rule& rule) {
  if (rule.descriptor_keys.empty()) return;
  for (const char* key : {"bandwidth", "messages"})
    if (table.has(key))
      table.mistake(key,
                    "found in a rule that needs a descriptor, which only a question has, and a question has "
                    "no body and no messages; expected two rules");
}

}  // namespace weir::config
