#include "weir/redis/error.hpp"

#include <string>

namespace weir::redis {

namespace {

const char* name_of(StoreError error) noexcept {
  switch (error) {
    case StoreError::Timeout:
      return "timeout";
    case StoreError::Away:
      return "away";
    case StoreError::ConnectionLost:
      return "connection_lost";
    case StoreError::BreakerOpen:
      return "breaker_open";
    case StoreError::Overloaded:
      return "overloaded";
    case StoreError::Stopped:
      return "stopped";
    case StoreError::Loading:
      return "loading";
    case StoreError::ReadOnly:
      return "readonly";
    case StoreError::OutOfMemory:
      return "out_of_memory";
    case StoreError::Misconfigured:
      return "misconfigured";
    case StoreError::NotAllowed:
      return "not_allowed";
    case StoreError::CommandDenied:
      return "command_denied";
    case StoreError::NoScript:
      return "no_script";
    case StoreError::ServerError:
      return "server_error";
    case StoreError::BadReply:
      return "bad_reply";
    case StoreError::NoTls:
      return "no_tls";
  }
  return "unknown";
}

class StoreCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "weir.redis"; }
  std::string message(int value) const override { return name_of(static_cast<StoreError>(value)); }
};

}  // namespace

const boost::system::error_category& store_category() noexcept {
  static const StoreCategory category;
  return category;
}

boost::system::error_code make_error_code(StoreError error) noexcept {
  return {static_cast<int>(error), store_category()};
}

}  // namespace weir::redis
