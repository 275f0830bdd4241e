#include "weir/acme/certificate.hpp"

#include <algorithm>
#include <ctime>
#include <new>

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

namespace weir::acme {

namespace {

constexpr const char* kPlaceholder = "weir placeholder";  // the organization in a placeholder's subject

using Bio = std::unique_ptr<BIO, decltype([](BIO* bio) { BIO_free(bio); })>;
using Certificate = std::unique_ptr<X509, decltype([](X509* certificate) { X509_free(certificate); })>;
using Request = std::unique_ptr<X509_REQ, decltype([](X509_REQ* request) { X509_REQ_free(request); })>;
using Extension =
    std::unique_ptr<X509_EXTENSION, decltype([](X509_EXTENSION* each) { X509_EXTENSION_free(each); })>;
using Extensions = std::unique_ptr<STACK_OF(X509_EXTENSION), decltype([](STACK_OF(X509_EXTENSION) * all) {
                                     sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
                                   })>;
using AltNames =
    std::unique_ptr<GENERAL_NAMES, decltype([](GENERAL_NAMES* names) { GENERAL_NAMES_free(names); })>;
using AuthorityKey =
    std::unique_ptr<AUTHORITY_KEYID, decltype([](AUTHORITY_KEYID* id) { AUTHORITY_KEYID_free(id); })>;
using Octets = std::unique_ptr<ASN1_OCTET_STRING,
                               decltype([](ASN1_OCTET_STRING* text) { ASN1_OCTET_STRING_free(text); })>;
using Oid = std::unique_ptr<ASN1_OBJECT, decltype([](ASN1_OBJECT* oid) { ASN1_OBJECT_free(oid); })>;

base::Error failed(const char* what) {
  ERR_clear_error();
  return {std::string("OpenSSL cannot ") + what};
}

Certificate first_of(std::string_view pem) {
  const Bio source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const auto no_question = [](char*, int, int, void*) { return -1; };
  Certificate certificate(PEM_read_bio_X509(source.get(), nullptr, no_question, nullptr));
  ERR_clear_error();
  return certificate;
}

// Returns true if all certificates in the text can be read. A listener cannot use a chain with an unreadable
// certificate.
bool is_whole(std::string_view pem) {
  const Bio source(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const auto no_question = [](char*, int, int, void*) { return -1; };
  ERR_clear_error();
  while (Certificate(PEM_read_bio_X509(source.get(), nullptr, no_question, nullptr))) {
  }
  const auto error = ERR_peek_last_error();
  ERR_clear_error();
  return ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
}

SysTime time_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return {};
  return SysTime(std::chrono::seconds(::timegm(&parts)));
}

std::string bytes_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

Names names_of(const X509* certificate) {
  Names names;
  const AltNames all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS) names.push_back(bytes_of(name->d.dNSName));
  }
  return sorted(std::move(names));
}

// Returns the octets of the serial number in DER, without tag and length. A serial number has at most 20
// octets (RFC 5280 §4.1.2.2), so the length takes one octet.
std::string serial_of(const X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_ASN1_INTEGER(X509_get0_serialNumber(certificate), &der);
  if (size < 2) return {};
  const std::string text(reinterpret_cast<const char*>(der) + 2, static_cast<std::size_t>(size) - 2);
  OPENSSL_free(der);
  return text;
}

std::string ari_id_of(const X509* certificate) {
  const AuthorityKey authority(static_cast<AUTHORITY_KEYID*>(
      X509_get_ext_d2i(certificate, NID_authority_key_identifier, nullptr, nullptr)));
  if (!authority || authority->keyid == nullptr) return {};
  return base64url(bytes_of(authority->keyid)) + "." + base64url(serial_of(certificate));
}

bool is_placeholder(const X509* certificate) {
  const auto* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_organizationName, -1);
  return at >= 0 && bytes_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))) == kPlaceholder &&
         X509_NAME_cmp(subject, X509_get_issuer_name(certificate)) == 0;
}

// Makes the extension that lists the names. The names must have passed fault_in_name(), so that none contains
// a character that is special in OpenSSL's syntax for extensions.
Extension alt_names(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "DNS:" : ",DNS:") + name;
  return Extension(X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, text.c_str()));
}

bool give_serial(X509* certificate) {
  std::uint64_t serial = 0;
  return RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1;
}

// Makes a self-signed certificate, as PEM, with its key in front. `further`: an extension in addition to the
// list of names; null: none.
base::Result<std::string> self_signed(const Names& names, const Extension& further,
                                      std::chrono::seconds lifetime) {
  const auto key = make_key();
  if (!key) return key.error();
  const Certificate made(X509_new());
  const auto listed = alt_names(names);
  if (!made || !listed) return failed("make a certificate");
  X509* certificate = made.get();
  X509_NAME* subject = X509_get_subject_name(certificate);
  constexpr long kBackdated = -3600;  // seconds, for clients whose clocks are behind
  const bool good =
      X509_set_version(certificate, X509_VERSION_3) == 1 && give_serial(certificate) &&
      X509_gmtime_adj(X509_getm_notBefore(certificate), kBackdated) != nullptr &&
      X509_gmtime_adj(X509_getm_notAfter(certificate), static_cast<long>(lifetime.count())) != nullptr &&
      X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_ASC,
                                 reinterpret_cast<const unsigned char*>(kPlaceholder), -1, -1, 0) == 1 &&
      X509_set_issuer_name(certificate, subject) == 1 && X509_set_pubkey(certificate, key->get()) == 1 &&
      X509_add_ext(certificate, listed.get(), -1) == 1 &&
      (!further || X509_add_ext(certificate, further.get(), -1) == 1) &&
      X509_sign(certificate, key->get(), EVP_sha256()) > 0;
  const Bio sink(BIO_new(BIO_s_mem()));
  if (!good || !sink || PEM_write_bio_X509(sink.get(), certificate) != 1) return failed("make a certificate");
  char* text = nullptr;
  const auto size = BIO_get_mem_data(sink.get(), &text);
  return {boost::system::in_place_value, to_pem(*key) + std::string(text, static_cast<std::size_t>(size))};
}

}  // namespace

Names sorted(Names names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

base::Result<CertificateInfo> read_certificate(std::string_view pem) {
  const auto certificate = first_of(pem);
  if (!certificate) return base::Error{"expected a certificate in PEM"};
  const X509* read = certificate.get();
  return CertificateInfo{.names = names_of(read),
                         .validity = {time_of(X509_get0_notBefore(read)), time_of(X509_get0_notAfter(read))},
                         .is_placeholder = is_placeholder(read),
                         .ari_id = ari_id_of(read)};
}

base::Result<std::string> make_signing_request(const Key& key, const Names& names) {
  const Request request(X509_REQ_new());
  const Extensions extensions(sk_X509_EXTENSION_new_null());
  auto listed = alt_names(names);
  if (!request || !extensions || !listed || sk_X509_EXTENSION_push(extensions.get(), listed.get()) <= 0)
    return failed("make a signing request");
  static_cast<void>(listed.release());  // the stack owns it now
  unsigned char* der = nullptr;
  int size = -1;
  if (X509_REQ_set_version(request.get(), X509_REQ_VERSION_1) == 1 &&
      X509_REQ_set_pubkey(request.get(), key.get()) == 1 &&
      X509_REQ_add_extensions(request.get(), extensions.get()) == 1 &&
      X509_REQ_sign(request.get(), key.get(), EVP_sha256()) > 0)
    size = i2d_X509_REQ(request.get(), &der);
  if (size <= 0) return failed("make a signing request");
  std::string text(reinterpret_cast<const char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return {boost::system::in_place_value, std::move(text)};
}

base::Result<std::string> make_placeholder(const Names& names) {
  return self_signed(names, nullptr, std::chrono::days(365));
}

base::Result<std::string> make_challenge_certificate(const std::string& name,
                                                     std::string_view key_authorization) {
  // the extension's value is itself an OCTET STRING with the digest
  const auto value = std::string("\x04\x20", 2) + sha256(key_authorization);
  const Octets octets(ASN1_OCTET_STRING_new());
  const Oid oid(OBJ_txt2obj("1.3.6.1.5.5.7.1.31", 1));
  if (!octets || !oid ||
      ASN1_OCTET_STRING_set(octets.get(), reinterpret_cast<const unsigned char*>(value.data()),
                            static_cast<int>(value.size())) != 1)
    return failed("make a certificate");
  const Extension proof(X509_EXTENSION_create_by_OBJ(nullptr, oid.get(), 1, octets.get()));
  if (!proof) return failed("make a certificate");
  return self_signed({name}, proof, std::chrono::days(1));
}

std::string fault_in_chain(std::string_view pem, const Key& key, const Names& names) {
  const auto certificate = first_of(pem);
  if (!certificate) return "the authority sent no certificate";
  if (!is_whole(pem)) return "the authority sent a chain with a broken certificate";
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return "the authority's certificate is for another key";
  }
  if (names_of(certificate.get()) != sorted(names)) return "the authority's certificate is for other names";
  return X509_cmp_current_time(X509_get0_notAfter(certificate.get())) > 0
             ? ""
             : "the authority's certificate has expired already";
}

}  // namespace weir::acme
