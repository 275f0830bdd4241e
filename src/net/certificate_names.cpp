#include "net/certificate_names.hpp"

#include <algorithm>
#include <memory>

#include <openssl/x509v3.h>

namespace weir::net {

namespace {

using Names =
    std::unique_ptr<GENERAL_NAMES, decltype([](GENERAL_NAMES* names) { GENERAL_NAMES_free(names); })>;

std::string text_of(const ASN1_STRING* string) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(ASN1_STRING_length(string))};
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

// Returns the subject's common name. Clients use the common name as the host name if the certificate has no
// alternative name (RFC 6125 §6.4.4).
std::string common_name(const X509* certificate) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  return at < 0 ? std::string() : text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

bool is_any_of(const std::vector<std::string>& patterns, std::string_view name) noexcept {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return covers(pattern, name); });
}

bool share_a_name(const CertificateNames& one, const CertificateNames& other) noexcept {
  const auto is_address_of_other = [&](const std::string& address) {
    return std::find(other.addresses.begin(), other.addresses.end(), address) != other.addresses.end();
  };
  return std::any_of(one.hosts.begin(), one.hosts.end(),
                     [&](const std::string& name) { return is_any_of(other.hosts, name); }) ||
         std::any_of(one.addresses.begin(), one.addresses.end(), is_address_of_other);
}

// Searches the certificates before number `at` for one that has the same key type and is valid for `name`.
// Clients that request `name` get that certificate instead. Returns its index, or nullopt if there is none.
std::optional<std::size_t> earlier_for(const std::vector<CertificateNames>& all, std::size_t at,
                                       std::string_view name) noexcept {
  for (std::size_t i = 0; i < at; ++i)
    if (all[i].key_type == all[at].key_type && is_any_of(all[i].hosts, name)) return i;
  return std::nullopt;
}

std::optional<HiddenReason> hidden(const std::vector<CertificateNames>& all, std::size_t at) noexcept {
  HiddenReason found;
  for (const auto& name : all[at].hosts) {
    const auto earlier = earlier_for(all, at, name);
    if (!earlier) return std::nullopt;
    if (!found.behind) found.behind = earlier;
  }
  return found;
}

}  // namespace

CertificateNames names_of(SSL_CTX* context) {
  const X509* certificate = SSL_CTX_get0_certificate(context);
  CertificateNames found;
  found.key_type = EVP_PKEY_get_base_id(X509_get0_pubkey(certificate));
  const Names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const auto* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) found.hosts.push_back(lower(text_of(name->d.dNSName)));
    if (name->type == GEN_IPADD) found.addresses.push_back(text_of(name->d.iPAddress));
  }
  if (!found.hosts.empty()) return found;
  if (auto name = lower(common_name(certificate)); !name.empty()) found.hosts.push_back(std::move(name));
  return found;
}

bool covers(std::string_view pattern, std::string_view name) noexcept {
  if (pattern == name) return true;
  // A wildcard directly below a top-level domain, such as "*.com", matches nothing in OpenSSL.
  if (!pattern.starts_with("*.") || pattern.find('.', 2) == std::string_view::npos) return false;
  const auto dot = name.find('.');
  return dot != std::string_view::npos && dot != 0 && name.substr(0, dot) != "*" &&
         name.substr(dot) == pattern.substr(1);
}

std::vector<std::size_t> fallback_certificates(const std::vector<CertificateNames>& all) {
  std::vector<std::size_t> found;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto has_type = [&](std::size_t other) { return all[other].key_type == all[i].key_type; };
    if (!has_type(0) && std::none_of(found.begin(), found.end(), has_type) && share_a_name(all[0], all[i]))
      found.push_back(i);
  }
  return found;
}

std::vector<std::optional<HiddenReason>> find_hidden(const std::vector<CertificateNames>& all) {
  std::vector<std::optional<HiddenReason>> found(all.size());
  const auto defaults = fallback_certificates(all);
  for (std::size_t i = 1; i < all.size(); ++i)
    if (std::find(defaults.begin(), defaults.end(), i) == defaults.end()) found[i] = hidden(all, i);
  return found;
}

}  // namespace weir::net
