// The reasons why Redis did not answer a bill. The rule's on_store_failure handles every value; no value
// reaches a client.
#pragma once

#include <type_traits>

#include <boost/system/error_code.hpp>

namespace weir::redis {

enum class StoreError {
  Timeout = 1,     // no answer within settings.timeout; Redis may still carry out the charge
  Away,            // no connection at the moment; nothing was sent
  ConnectionLost,  // the connection broke after the command was sent
  BreakerOpen,     // too many failures in a row; nothing was sent
  Overloaded,      // too many commands wait already (StoreTuning::max_pending); nothing was sent
  Stopped,         // the store is stopping
  Loading,         // LOADING, BUSY, TRYAGAIN, MASTERDOWN: Redis will answer again soon
  ReadOnly,        // READONLY: this server is a replica now
  OutOfMemory,     // OOM: maxmemory is reached and nothing may be evicted
  Misconfigured,   // MISCONF, NOREPLICAS: Redis refuses writes for its own safety
  NotAllowed,      // NOAUTH, WRONGPASS, NOPERM
  CommandDenied,   // the ACL user may not run a command of a script; only bills that need it fail
  NoScript,        // NOSCRIPT again after weir loaded the script again
  ServerError,     // any other error reply
  BadReply,        // not RESP, or not a reply of weir's scripts
  NoTls,           // the TLS handshake failed: untrusted certificate, or a server without TLS
};

[[nodiscard]] const boost::system::error_category& store_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(StoreError error) noexcept;

}  // namespace weir::redis

template <>
struct boost::system::is_error_code_enum<weir::redis::StoreError> : std::true_type {};
