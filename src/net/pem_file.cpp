#include "net/pem_file.hpp"

#include "weir/net/file.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include <openssl/err.h>

namespace weir::net {

namespace {

// Returns the first error in OpenSSL's queue as text, because the first error is nearest to the cause.
std::string first_reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  std::string text = reason != nullptr ? reason : "an unnamed error";
  ERR_clear_error();
  return text;
}

// Returns the labels of a PEM text (RFC 7468 §2). The label of "-----BEGIN CERTIFICATE-----" is
// "CERTIFICATE".
std::vector<std::string_view> labels_in(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----";
  std::vector<std::string_view> labels;
  for (auto at = text.find(kBegin); at != text.npos; at = text.find(kBegin, at)) {
    at += kBegin.size();
    labels.push_back(text.substr(at, text.find(kEnd, at) - at));
  }
  return labels;
}

struct Words {
  std::string_view label;   // every PEM label in this kind of file ends with this text
  std::string_view marker;  // a PEM line that every file of this kind contains
  std::string_view tool;    // the openssl command that converts other formats to this kind of file
  std::string_view swapped;
};

const Words& words_of(PemKind kind) noexcept {
  static constexpr Words kCertificate{
      .label = "CERTIFICATE",
      .marker = "-----BEGIN CERTIFICATE-----",
      .tool = "x509",
      .swapped = "contains a private key, not a certificate; are cert and key swapped?"};
  static constexpr Words kPrivateKey{
      .label = "PRIVATE KEY",
      .marker = "-----BEGIN PRIVATE KEY-----",
      .tool = "pkey",
      .swapped = "contains a certificate, not a private key; are cert and key swapped?"};
  static constexpr Words kAuthorities{
      .label = "CERTIFICATE",
      .marker = "-----BEGIN CERTIFICATE-----",
      .tool = "x509",
      .swapped = "contains a private key, not a certificate; expected the authority's certificate"};
  static constexpr Words kRevocationLists{
      .label = "X509 CRL",
      .marker = "-----BEGIN X509 CRL-----",
      .tool = "crl",
      .swapped = "contains a private key; expected the authority's list of revoked certificates"};
  switch (kind) {
    case PemKind::RevocationLists:
      return kRevocationLists;
    case PemKind::PrivateKey:
      return kPrivateKey;
    case PemKind::Authorities:
      return kAuthorities;
    case PemKind::Certificate:
      break;
  }
  return kCertificate;
}

// Returns what is wrong with a file, as text that follows the file's name in the error.
std::string fault_of_content(const std::string& file, std::string_view content, PemKind wanted) {
  constexpr char kSequence = 0x30;  // the first octet of every DER file
  const auto& words = words_of(wanted);
  const auto& others = words_of(wanted == PemKind::PrivateKey ? PemKind::Certificate : PemKind::PrivateKey);
  const auto labels = labels_in(content);
  const auto has = [&](const Words& kind) {
    return std::any_of(labels.begin(), labels.end(),
                       [&](std::string_view label) { return label.ends_with(kind.label); });
  };
  std::string fault;
  if (has(words)) return fault.append("is rejected by OpenSSL: ").append(first_reason());
  if (has(others)) return fault.append(words.swapped);
  if (!labels.empty())
    return fault.append("contains ").append(labels.front()).append("; expected ").append(words.marker);
  if (content.empty()) return fault.append("is empty; expected a PEM file with ").append(words.marker);
  if (content.front() != kSequence)
    return fault.append("is not a PEM file; expected one with ").append(words.marker);
  fault.append("is DER; expected PEM: convert it with openssl ").append(words.tool);
  return fault.append(" -inform DER -in ").append(file);
}

}  // namespace

PemFile::PemFile(std::string what, std::string file, std::string text)
    : what_(std::move(what)), file_(std::move(file)), text_(std::move(text)) {}

base::Result<PemFile> PemFile::read(std::string what, std::string file) {
  auto text = read_file(file);
  if (!text) return base::Error{what + " \"" + file + "\" cannot be read: " + text.error().message};
  return PemFile(std::move(what), std::move(file), std::move(*text));
}

Bio PemFile::source() const {
  return Bio(BIO_new_mem_buf(text_.data(), static_cast<int>(text_.size())));
}

base::Error PemFile::error(PemKind wanted) const {
  auto text = what_ + " \"" + file_ + "\" " + fault_of_content(file_, text_, wanted);
  ERR_clear_error();
  return base::Error{std::move(text)};
}

}  // namespace weir::net
