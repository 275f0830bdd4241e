// The files of a TLS client's settings: whether they changed, and what is wrong with them.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/file_stamp.hpp"
#include "weir/net/tls_client.hpp"

#include <chrono>
#include <optional>

namespace weir::net {

// Returns the stamps of all files that a context of these settings is made from, as they are now. Without
// `ca` the file of the system's authorities is one of them, where the system has it.
[[nodiscard]] FileStamps stamps_of(const TlsClientSettings& settings);

// The certificate that weir shows to servers.
struct OwnCertificate {
  std::optional<std::chrono::sys_seconds> not_after{};  // absent: the settings have none
};
// Reads the files and forgets them again. An error names the file and says what is wrong with it. Opens
// nothing but regular files.
[[nodiscard]] base::Result<OwnCertificate> try_files(const TlsClientSettings& settings);

}  // namespace weir::net
