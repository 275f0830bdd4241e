#include "weir/net/tls_context.hpp"

#include "net/certificate_names.hpp"
#include "net/staple.hpp"
#include "net/tls_words.hpp"

#include "weir/net/file.hpp"
#include "weir/net/revocation_lists.hpp"
#include "weir/net/tls_files.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <new>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

namespace weir::net {

namespace {

// Protocols in the wire form of ALPN (RFC 7301 §3.1), in weir's order of preference.
constexpr std::string_view kAlpnHttp1 = "\x08http/1.1\x08http/1.0";
constexpr std::string_view kAlpnHttp2 = "\x02h2";
constexpr std::string_view kAlpnBoth = "\x02h2\x08http/1.1\x08http/1.0";

const std::string_view& alpn_of(const Protocols& protocols) noexcept {
  if (!protocols.h2) return kAlpnHttp1;
  return protocols.http1 ? kAlpnBoth : kAlpnHttp2;
}

// Chooses the first protocol in weir's order that the client offers (RFC 7301 §3.2). Rejects clients that
// offer only other protocols. If a client offers none, weir assumes HTTP/1.1, or the listener's only
// protocol.
int choose_protocol(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* offered,
                    unsigned offered_size, void* ours) {
  const auto& names = *static_cast<const std::string_view*>(ours);
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, size, reinterpret_cast<const unsigned char*>(names.data()),
                                          static_cast<unsigned>(names.size()), offered, offered_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// weir's own data of a TLS context. OpenSSL frees this object together with the context.
struct Extras {
  CertificateNames names;
  std::shared_ptr<TicketKeys> tickets;
  // The members below are set only in the context of a listener's first certificate. `others`: the contexts
  // of its other certificates.
  std::vector<TlsContext> others;
  // The certificates that weir offers beside the first one if no certificate matches the requested name
  // (net::fallback_certificates()). A number n stands for others[n - 1].
  std::vector<std::size_t> fallback_certificates{};
  std::size_t key_types = 1;  // number of key types among all certificates
};

int extras_slot() {
  static const int slot = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* extras, CRYPTO_EX_DATA*, int, long, void*) { delete static_cast<Extras*>(extras); });
  return slot;
}

// Returns weir's data of the context; null if give_extras() failed for lack of memory.
Extras* extras_of(SSL_CTX* context) noexcept {
  return static_cast<Extras*>(SSL_CTX_get_ex_data(context, extras_slot()));
}

bool give_extras(SSL_CTX* context) {
  auto extras = std::make_unique<Extras>();
  if (SSL_CTX_set_ex_data(context, extras_slot(), extras.get()) != 1) return false;
  static_cast<void>(extras.release());  // the context owns the object now
  return true;
}

bool is_for(SSL_CTX* context, const char* name) noexcept {
  return X509_check_host(SSL_CTX_get0_certificate(context), name, 0, 0, nullptr) == 1;
}

// The certificates that weir offers to one client, at most one of each key type. OpenSSL sends the
// certificate that the client can verify. OpenSSL decides by the client's signature algorithms, and in TLS
// 1.2 also by its ciphers.
class Offer {
 public:
  explicit Offer(SSL* ssl) noexcept : ssl_(ssl) {}
  [[nodiscard]] std::size_t size() const noexcept { return shown_.size(); }

  // Adds a context's certificate. Does nothing if a certificate of the same key type was added already.
  void add(SSL_CTX* context) {
    const auto type = extras_of(context)->names.key_type;
    const auto has_type = [&](SSL_CTX* other) { return extras_of(other)->names.key_type == type; };
    if (std::any_of(shown_.begin(), shown_.end(), has_type)) return;
    if (shown_.empty())
      SSL_set_SSL_CTX(ssl_, context);
    else
      show_too(context);
    shown_.push_back(context);
  }

 private:
  void show_too(SSL_CTX* context) noexcept {
    STACK_OF(X509)* chain = nullptr;
    SSL_CTX_get0_chain_certs(context, &chain);
    if (SSL_use_cert_and_key(ssl_, SSL_CTX_get0_certificate(context), SSL_CTX_get0_privatekey(context), chain,
                             1) != 1)
      // no memory for this certificate: the client gets one of the certificates that were added before
      ERR_clear_error();
  }

  SSL* const ssl_;
  std::vector<SSL_CTX*> shown_;
};

// Offers the certificates that are valid for the requested name, the first of each key type (RFC 6066 §3). If
// there is none, or the client sent no name, offers the first certificate and its stand-ins.
void offer_certificates(SSL* ssl, SSL_CTX* first) {
  const auto& all = *extras_of(first);
  if (all.others.empty()) return;
  Offer offer(ssl);
  if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name); name != nullptr) {
    if (is_for(first, name)) offer.add(first);
    for (std::size_t i = 0; i < all.others.size() && offer.size() < all.key_types; ++i)
      if (is_for(all.others[i].get(), name)) offer.add(all.others[i].get());
    if (offer.size() != 0) return;
  }
  offer.add(first);
  for (const auto number : all.fallback_certificates) offer.add(all.others[number - 1].get());
}

int choose_certificate(SSL* ssl, int*, void* first) noexcept {
  try {
    offer_certificates(ssl, static_cast<SSL_CTX*>(first));
  } catch (const std::bad_alloc&) {
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  }
  return SSL_TLSEXT_ERR_OK;
}

bool arm(const TicketKey& key, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, bool sealing) {
  char digest[] = "SHA256";
  auto secret = key.mac;
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0), OSSL_PARAM_construct_end()};
  const bool armed =
      EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.cipher.data(), iv, sealing ? 1 : 0) == 1 &&
      EVP_MAC_CTX_set_params(mac, parameters) == 1;
  OPENSSL_cleanse(secret.data(), secret.size());
  return armed;
}

// The callback of SSL_CTX_set_tlsext_ticket_key_evp_cb(3). `sealing`: not 0 to encrypt a new ticket, 0 to
// decrypt the client's ticket. Returns 1 on success. Returns 2 if the client's ticket is good, but its key
// has been replaced. Returns 0 to issue no ticket, or to reject the client's ticket.
int choose_ticket_key(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                      EVP_MAC_CTX* mac, int sealing) {
  auto& keys = *extras_of(SSL_get_SSL_CTX(ssl))->tickets;
  const auto now = std::chrono::steady_clock::now();
  if (sealing == 0) {
    const auto found =
        keys.find(std::span<const unsigned char, TicketKey::kNameSize>(name, TicketKey::kNameSize), now);
    if (!found || !arm(found->key, iv, cipher, mac, false)) return 0;
    return found->current ? 1 : 2;
  }
  const auto key = keys.current(now);
  if (!key || RAND_bytes(iv, EVP_CIPHER_get_iv_length(EVP_aes_256_cbc())) != 1) return 0;
  std::copy(key->name.begin(), key->name.end(), name);
  return arm(*key, iv, cipher, mac, true) ? 1 : 0;
}

// The callback of SSL_CTX_set_session_ticket_cb(3) for a ticket that a client offers. Decides whether the
// client gets a new ticket. With TLS 1.3, the client always gets one. Clients should use each ticket only
// once, because an observer could link connections that show the same ticket (RFC 8446 §C.4).
//
// A new ticket of TLS 1.3 would begin the session's lifetime anew, and reconnections could prolong the
// session forever. So this function sets the lifetime of the resumed session to the rest of the old lifetime.
SSL_TICKET_RETURN admit_session(SSL* ssl, SSL_SESSION* session, const unsigned char*, std::size_t,
                                SSL_TICKET_STATUS status, void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW)
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  const auto now = static_cast<long>(std::time(nullptr));
  const auto age = std::max(now - SSL_SESSION_get_time(session), 0L);
  const auto left = SSL_SESSION_get_timeout(session) - age;
  if (left <= 0) return SSL_TICKET_RETURN_IGNORE_RENEW;
  SSL_SESSION_set_time(session, now);
  SSL_SESSION_set_timeout(session, left);
  const bool renews = status == SSL_TICKET_SUCCESS_RENEW || SSL_version(ssl) == TLS1_3_VERSION;
  return renews ? SSL_TICKET_RETURN_USE_RENEW : SSL_TICKET_RETURN_USE;
}

bool contains(const STACK_OF(X509_NAME) * names, const X509_NAME* name) {
  for (int i = 0; i < sk_X509_NAME_num(names); ++i)
    if (X509_NAME_cmp(sk_X509_NAME_value(names, i), name) == 0) return true;
  return false;
}

// Makes weir send the subjects of the trusted certificates to clients. A client uses these subjects to choose
// its own certificate. Returns false on an error.
bool name_authorities(SSL_CTX* context) {
  const auto* trusted = X509_STORE_get0_objects(SSL_CTX_get_cert_store(context));
  for (int i = 0; i < sk_X509_OBJECT_num(trusted); ++i) {
    X509* certificate = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(trusted, i));
    if (certificate == nullptr) continue;  // the entry is a revocation list
    const bool known = contains(SSL_CTX_get_client_CA_list(context), X509_get_subject_name(certificate));
    if (!known && SSL_CTX_add_client_CA(context, certificate) != 1) return false;
  }
  return true;
}

bool requires_certificate(const TlsSettings& settings) noexcept {
  return settings.client_auth == ClientAuth::Require;
}

// Makes existing sessions invalid when the authorities or their revocation lists change, or when the value of
// `client_auth` changes. OpenSSL does not verify the client's certificate again when a session is resumed. So
// the session ID context (SSL_CTX_set_session_id_context(3)) is a digest of the value of `client_auth` and
// the content of both files. Returns false on an error.
bool bind_sessions(SSL_CTX* context, const TlsSettings& settings) {
  std::string authorities = "weir ";
  if (!settings.client_ca.empty()) {
    authorities += requires_certificate(settings) ? "requires " : "asks for ";
    for (const auto* file : {&settings.client_ca, &settings.client_crl}) {
      if (file->empty()) continue;
      if (const auto text = read_file(*file))  // ask_clients() reports a file that cannot be read
        authorities.append(std::to_string(text->size())).append(" ").append(*text);
    }
  }
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  static_assert(SHA256_DIGEST_LENGTH <= SSL_MAX_SID_CTX_LENGTH);
  return EVP_Digest(authorities.data(), authorities.size(), digest.data(), nullptr, EVP_sha256(), nullptr) ==
             1 &&
         SSL_CTX_set_session_id_context(context, digest.data(), digest.size()) == 1;
}

std::optional<base::Error> ask_clients(SSL_CTX* context, const TlsSettings& settings) {
  if (auto error = take_authorities(context, "the file of client authorities", settings.client_ca))
    return error;
  if (!name_authorities(context)) return last_tls_error("OpenSSL");
  if (!settings.client_crl.empty())
    if (auto error = take_revocation_lists(context, settings.client_crl)) return error;
  const int required = requires_certificate(settings) ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | required, nullptr);
  return std::nullopt;
}

// Sets the options that all contexts of a listener have in common.
bool set_up(SSL_CTX* c, const TlsSettings& settings) {
  SSL_CTX_set_min_proto_version(c,
                                settings.min_version == TlsVersion::Tls13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                             SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(
      c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  // Turns OpenSSL's session cache off, so that sessions are resumed by ticket only. For TLS 1.2 clients
  // without tickets, the cache would keep up to 20,480 sessions, behind one lock for all workers.
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_alpn_select_cb(c, choose_protocol, const_cast<std::string_view*>(&alpn_of(settings.protocols)));
  return give_extras(c) && bind_sessions(c, settings) && SSL_CTX_set_cipher_list(c, kCiphers12) == 1;
}

base::Result<TlsContext> make_one(const TlsSettings& settings, const CertificateFiles& files,
                                  const std::shared_ptr<TicketKeys>& tickets) {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context || !set_up(context.get(), settings)) return last_tls_error("OpenSSL");
  SSL_CTX* c = context.get();
  if (auto error = take_certificate(c, files.cert)) return *std::move(error);
  if (auto error = take_private_key(c, files.key, files.cert)) return *std::move(error);
  extras_of(c)->names = names_of(c);
  if (!settings.client_ca.empty())
    if (auto error = ask_clients(c, settings)) return *std::move(error);
  if (tickets) {
    extras_of(c)->tickets = tickets;
    SSL_CTX_set_tlsext_ticket_key_evp_cb(c, choose_ticket_key);
    SSL_CTX_set_session_ticket_cb(c, nullptr, admit_session, nullptr);
  }
  SSL_CTX_set_tlsext_status_cb(c, staple_response);
  if (files.ocsp.empty()) return context;
  if (auto error = add_staple(SSL_CTX_get0_certificate(c), files.ocsp)) return *std::move(error);
  return context;
}

CertificateState state_of(SSL_CTX* context) {
  const X509* certificate = SSL_CTX_get0_certificate(context);
  CertificateState state;
  std::tm parts{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &parts) == 1)
    state.not_after = std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
  if (const auto* staple = staple_of(certificate)) state.stapled_until = staple->until;
  return state;
}

// Returns the names of all certificates of a listener, in the order of the settings.
std::vector<CertificateNames> all_names(SSL_CTX* first) {
  std::vector<CertificateNames> names{extras_of(first)->names};
  for (const auto& other : extras_of(first)->others) names.push_back(extras_of(other.get())->names);
  return names;
}

std::size_t count_key_types(const std::vector<CertificateNames>& all) {
  std::set<int> types;
  for (const auto& one : all) types.insert(one.key_type);
  return types.size();
}

}  // namespace

base::Result<TlsContext> make_tls_context(const TlsSettings& settings,
                                          const std::shared_ptr<TicketKeys>& tickets) {
  std::vector<TlsContext> others;
  TlsContext first;
  for (const auto& files : settings.certificates) {
    auto made = make_one(settings, files, tickets);
    if (!made) return made.error();
    if (first)
      others.push_back(std::move(*made));
    else
      first = std::move(*made);
  }
  if (!first) return base::Error{"a TLS listener needs a certificate"};
  auto& extras = *extras_of(first.get());
  extras.others = std::move(others);
  const auto names = all_names(first.get());
  extras.fallback_certificates = fallback_certificates(names);
  extras.key_types = count_key_types(names);
  SSL_CTX_set_tlsext_servername_callback(first.get(), choose_certificate);
  SSL_CTX_set_tlsext_servername_arg(first.get(), first.get());
  return first;
}

TlsContext share(SSL_CTX* context) noexcept {
  if (context != nullptr) SSL_CTX_up_ref(context);
  return TlsContext(context);
}

std::vector<CertificateState> certificate_states(SSL_CTX* context) {
  std::vector<CertificateState> states{state_of(context)};
  for (const auto& other : extras_of(context)->others) states.push_back(state_of(other.get()));
  const auto hidden = find_hidden(all_names(context));
  for (std::size_t i = 0; i < states.size(); ++i)
    if (hidden[i]) states[i].hidden = *hidden[i];
  return states;
}

std::optional<base::Error> fault_of_client_ca(const std::string& file) {
  const TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return last_tls_error("OpenSSL");
  TlsSettings settings;
  settings.client_ca = file;
  return ask_clients(context.get(), settings);
}

}  // namespace weir::net
