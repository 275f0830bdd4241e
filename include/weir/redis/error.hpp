// The reasons why Redis did not decide a bill (the charges of one request). After any of these errors,
// on_store_failure of each rule says what happens to the request. Clients never see these values.
#pragma once

#include <type_traits>

#include <boost/system/error_code.hpp>

namespace weir::redis {

enum class StoreError {
  Timeout = 1,     // no answer within settings.timeout; Redis may still make the charge later
  Away,            // there is no connection; nothing was sent
  ConnectionLost,  // the connection broke after the command was sent
  BreakerOpen,     // the circuit breaker is open after too many failures in a row; nothing was sent
  Overloaded,      // too many commands already wait for a reply (StoreTuning::max_pending); nothing was sent
  Stopped,         // the store is stopping
  Loading,         // LOADING, BUSY, TRYAGAIN, MASTERDOWN: a temporary state of the server
  ReadOnly,        // READONLY: the server is a replica now
  OutOfMemory,     // OOM: maxmemory is reached, and Redis finds no key to evict
  Misconfigured,   // MISCONF, NOREPLICAS: Redis refuses writes, to protect its data
  NotAllowed,      // NOAUTH, WRONGPASS, NOPERM: the user or the password is wrong, or a right is missing
  // The ACL user may not run a command that a script uses. Bills that do not need this command still work.
  CommandDenied,
  NoScript,     // NOSCRIPT again, although weir has just loaded the script
  ServerError,  // Redis replied with any other error
  BadReply,     // the bytes are not RESP, or the reply is not one that weir's scripts return
  NoTls,        // the TLS handshake failed: the certificate is not trusted, or the server has no TLS
};

[[nodiscard]] const boost::system::error_category& store_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(StoreError error) noexcept;

}  // namespace weir::redis

template <>
struct boost::system::is_error_code_enum<weir::redis::StoreError> : std::true_type {};
