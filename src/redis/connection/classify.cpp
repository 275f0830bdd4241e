#include "redis/connection/classify.hpp"

#include <array>

namespace weir::redis {

namespace {

// Returns true if the ACL user is not allowed to run a command inside the script. Redis has no error code for
// this case, so the text of the error decides. Redis up to 6.2 sends the first text below, and Redis since
// 7.0 the second.
bool is_denied_within(std::string_view text) noexcept {
  return text.find("The user executing the script can't") != std::string_view::npos ||
         text.find("ACL failure in script") != std::string_view::npos;
}

}  // namespace

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
  if (is_denied_within(text)) return StoreError::CommandDenied;
  // The start of a script's error before Redis 7. The error of the command inside the script is at the end:
  // "ERR Error running script (…): …: -OOM …".
  constexpr std::string_view kWrapped = "ERR Error running script";
  if (const auto inner = text.rfind(": -"); text.starts_with(kWrapped) && inner != std::string_view::npos)
    return classify(text.substr(inner + 3));
  const auto code = text.substr(0, text.find(' '));
  for (const auto& [name, error] : kMeanings)
    if (name == code) return error;
  return StoreError::ServerError;
}

std::string readable(std::string_view text) {
  constexpr std::size_t kMost = 200;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    const auto octet = static_cast<unsigned char>(c);
    if (octet >= 0x20 && octet != 0x7f) {
      out += c;
      continue;
    }
    out += "\\x";
    out += kDigits[octet >> 4];
    out += kDigits[octet & 15];
  }
  if (text.size() > kMost) out += " ...";
  return out;
}

std::string advised(std::string_view text) {
  if (text.starts_with("MOVED ")) return readable(text) + R"( (it is a cluster: write topology = "cluster"))";
  const bool right = text.starts_with("NOPERM") || is_denied_within(text);
  return readable(text) +
         (right ? " (docs/distributed.md, Rights, lists the permissions that weir's user needs)" : "");
}

bool rejects_all_commands(std::string_view text) noexcept {
  return text.starts_with("DENIED") || text.starts_with("NOAUTH") ||
         text.starts_with("ERR max number of clients");
}

}  // namespace weir::redis
