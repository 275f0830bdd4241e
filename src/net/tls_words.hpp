// What both sides of TLS share.
#pragma once

#include "weir/base/result.hpp"

#include <array>
#include <optional>
#include <string>

#include <openssl/err.h>
#include <openssl/ssl.h>

namespace weir::net {

// RFC 9325 §4.2; of TLS 1.3 OpenSSL's own are good.
inline constexpr auto kCiphers12 =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

// `what`, and what OpenSSL says of it last.
inline base::Error last_tls_error(const std::string& what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_peek_last_error(), text.data(), text.size());
  ERR_clear_error();
  return base::Error{what + ": " + text.data()};
}

// Takes the private key of a PEM file. One that is encrypted is an error: OpenSSL would ask whoever sits at
// the terminal for its pass phrase, and all that this thread does would wait for the answer.
inline std::optional<base::Error> use_private_key(SSL_CTX* context, const std::string& file) {
  bool asked = false;
  SSL_CTX_set_default_passwd_cb_userdata(context, &asked);
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void* told) {
    *static_cast<bool*>(told) = true;
    return -1;
  });
  const bool taken = SSL_CTX_use_PrivateKey_file(context, file.c_str(), SSL_FILETYPE_PEM) == 1;
  SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
  SSL_CTX_set_default_passwd_cb(context, nullptr);
  if (taken) return std::nullopt;
  if (!asked) return last_tls_error("the key \"" + file + "\"");
  ERR_clear_error();
  return base::Error{"the key \"" + file +
                     "\" is encrypted: write it without a pass phrase (openssl pkey -in " + file +
                     " -out …), readable by weir alone"};
}

}  // namespace weir::net
