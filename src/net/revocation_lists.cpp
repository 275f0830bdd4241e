#include "weir/net/revocation_lists.hpp"

#include "net/pem_file.hpp"

#include "weir/net/tls_context.hpp"
#include "weir/net/tls_files.hpp"

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

namespace weir::net {

namespace {

constexpr std::string_view kLists = "the file of revocation lists";

using List = std::unique_ptr<X509_CRL, decltype([](X509_CRL* list) { X509_CRL_free(list); })>;
using Memory = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free(bio); })>;

// Adds the revocation lists in a PEM text to the store. Returns false if the text has no list, or a faulty
// one.
bool add_lists(X509_STORE* store, BIO* source) {
  bool has_list = false;
  while (const List list{PEM_read_bio_X509_CRL(source, nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_crl(store, list.get()) != 1) return false;
    has_list = true;
  }
  const auto error = ERR_peek_last_error();
  const bool is_at_end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (has_list && is_at_end) ERR_clear_error();
  return has_list && is_at_end;
}

// Returns a subject in the form of RFC 2253, such as "CN=Example CA".
std::string text_of(const X509_NAME* name) {
  const Memory memory(BIO_new(BIO_s_mem()));
  if (!memory || X509_NAME_print_ex(memory.get(), name, 0, XN_FLAG_RFC2253) < 0) return "an authority";
  char* text = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

struct Trusted {
  std::vector<X509*> authorities;  // the store owns them
  std::vector<X509_CRL*> lists;    // the store owns them
};

Trusted contents_of(const X509_STORE* store) {
  Trusted trusted;
  const auto* objects = X509_STORE_get0_objects(store);
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    const X509_OBJECT* object = sk_X509_OBJECT_value(objects, i);
    if (X509* certificate = X509_OBJECT_get0_X509(object)) trusted.authorities.push_back(certificate);
    if (X509_CRL* list = X509_OBJECT_get0_X509_CRL(object)) trusted.lists.push_back(list);
  }
  return trusted;
}

// Returns what is wrong with the revocation lists of this authority; empty if one of them is valid for it.
// While an authority replaces its key, two authorities have the same name. So a list with the right name may
// belong to the other authority.
std::string fault_for(X509* authority, const Trusted& trusted) {
  const X509_NAME* name = X509_get_subject_name(authority);
  if ((X509_get_key_usage(authority) & KU_CRL_SIGN) == 0)
    return "cannot have a list of \"" + text_of(name) +
           "\": the certificate of this authority permits no cRLSign (keyUsage)";
  bool has_list = false;
  for (X509_CRL* list : trusted.lists) {
    if (X509_NAME_cmp(X509_CRL_get_issuer(list), name) != 0) continue;
    if (X509_CRL_verify(list, X509_get0_pubkey(authority)) == 1) return "";
    has_list = true;
  }
  ERR_clear_error();
  if (has_list)
    return "has a list of \"" + text_of(name) +
           "\" that this authority did not sign; expected the list from "
           "the authority in client_ca";
  return "has no list of \"" + text_of(name) +
         "\", so weir would reject all clients of this authority; append its list";
}

}  // namespace

std::optional<base::Error> take_revocation_lists(SSL_CTX* context, const std::string& file) {
  ERR_clear_error();
  const auto pem = PemFile::read(std::string(kLists), file);
  if (!pem) return pem.error();
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  if (!add_lists(store, pem->source().get())) return pem->error(PemKind::RevocationLists);
  const auto trusted = contents_of(store);
  for (X509* authority : trusted.authorities)
    if (const auto fault = fault_for(authority, trusted); !fault.empty())
      return base::Error{std::string(kLists).append(" \"").append(file).append("\" ").append(fault)};
  X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return std::nullopt;
}

std::optional<base::Error> fault_of_client_crl(const std::string& client_ca, const std::string& file) {
  const TlsContext context(SSL_CTX_new(TLS_server_method()));
  if (!context) return base::Error{"OpenSSL: no memory"};
  if (auto error = take_authorities(context.get(), "the file of client authorities", client_ca)) return error;
  return take_revocation_lists(context.get(), file);
}

std::optional<std::chrono::sys_seconds> revocation_lists_end(SSL_CTX* context) {
  std::optional<std::chrono::sys_seconds> end;
  for (const X509_CRL* list : contents_of(SSL_CTX_get_cert_store(context)).lists) {
    std::tm parts{};
    const ASN1_TIME* next = X509_CRL_get0_nextUpdate(list);
    if (next == nullptr || ASN1_TIME_to_tm(next, &parts) != 1) continue;
    const std::chrono::sys_seconds at{std::chrono::seconds(::timegm(&parts))};
    if (!end || at < *end) end = at;
  }
  return end;
}

}  // namespace weir::net
