// Reads PEM files, and explains why a file is unusable.
#pragma once

#include "weir/base/result.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include <openssl/bio.h>

namespace weir::net {

struct BioFree {
  void operator()(BIO* bio) const noexcept { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioFree>;

enum class PemKind : std::uint8_t { Certificate, PrivateKey, Authorities, RevocationLists };

// A PEM file that was read. OpenSSL gets the text and never opens the file, because opening a pipe would wait
// for a writer.
class PemFile {
 public:
  // Reads a PEM file. `what`: what errors call the file, such as "the certificate".
  [[nodiscard]] static base::Result<PemFile> read(std::string what, std::string file);

  // Returns a new OpenSSL source that yields the file's text. The source must not outlive the PemFile.
  [[nodiscard]] Bio source() const;
  // Returns the error for a text in which OpenSSL found nothing usable. Must be called right after OpenSSL
  // failed; clears OpenSSL's error queue.
  [[nodiscard]] base::Error error(PemKind wanted) const;

 private:
  PemFile(std::string what, std::string file, std::string text);

  std::string what_;
  std::string file_;
  std::string text_;
};

}  // namespace weir::net
