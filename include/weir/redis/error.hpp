// Why Redis did not answer a bill. Every value has a rule's on_store_failure to meet it; none reaches a
// client.
#pragma once

#include <type_traits>

#include <boost/system/error_code.hpp>

namespace weir::redis {

enum class StoreError {
  Timeout = 1,     // no answer within settings.timeout; Redis may still carry the charge out
  Away,            // no connection at the moment; nothing was sent
  ConnectionLost,  // the connection broke after the command was sent
  BreakerOpen,     // too many failures in a row; nothing was sent
  Overloaded,      // as many commands wait as we allow; nothing was sent
  Stopped,         // the store is stopping
  Loading,         // LOADING, BUSY, TRYAGAIN, MASTERDOWN: soon again
  ReadOnly,        // READONLY: this is a replica now
  OutOfMemory,     // OOM: maxmemory is reached and nothing may be evicted
  Misconfigured,   // MISCONF, NOREPLICAS: Redis refuses writes for its own safety
  NotAllowed,      // NOAUTH, WRONGPASS, NOPERM
  CommandDenied,   // a script's user may not run one of its commands: of bills that come to it alone
  NoScript,        // NOSCRIPT again after the script had been loaded again
  ServerError,     // any other error reply
  BadReply,        // not RESP, or not what our script answers
  NoTls,           // no TLS came about: a certificate that is not believed, or a server that speaks none
};

[[nodiscard]] const boost::system::error_category& store_category() noexcept;
[[nodiscard]] boost::system::error_code make_error_code(StoreError error) noexcept;

}  // namespace weir::redis

template <>
struct boost::system::is_error_code_enum<weir::redis::StoreError> : std::true_type {};
