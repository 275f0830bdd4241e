// What an error reply of Redis means.
#include "redis/session.hpp"

#include <array>

namespace weir::redis {

StoreError classify(std::string_view text) noexcept {
  struct Meaning {
    std::string_view code;
    StoreError error;
  };
  static constexpr std::array kMeanings = {
      Meaning{"LOADING", StoreError::Loading},          Meaning{"BUSY", StoreError::Loading},
      Meaning{"CLUSTERDOWN", StoreError::Loading},      Meaning{"TRYAGAIN", StoreError::Loading},
      Meaning{"MASTERDOWN", StoreError::Loading},       Meaning{"READONLY", StoreError::ReadOnly},
      Meaning{"OOM", StoreError::OutOfMemory},          Meaning{"MISCONF", StoreError::Misconfigured},
      Meaning{"NOREPLICAS", StoreError::Misconfigured}, Meaning{"NOAUTH", StoreError::NotAllowed},
      Meaning{"WRONGPASS", StoreError::NotAllowed},     Meaning{"NOPERM", StoreError::NotAllowed},
      Meaning{"NOSCRIPT", StoreError::NoScript},
  };
  // Before Redis 7 what a command in a script answered comes last in "ERR Error running script (…): …: -OOM
  // …".
  constexpr std::string_view kWrapped = "ERR Error running script";
  if (const auto inner = text.rfind(": -"); text.starts_with(kWrapped) && inner != std::string_view::npos)
    return classify(text.substr(inner + 3));
  // A script whose user may not run one of its commands says so without a code of its own.
  if (text.starts_with("ERR The user executing the script can't")) return StoreError::NotAllowed;
  const auto code = text.substr(0, text.find(' '));
  for (const auto& [name, error] : kMeanings)
    if (name == code) return error;
  return StoreError::ServerError;
}

}  // namespace weir::redis
