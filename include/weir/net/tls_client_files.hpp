// The files of a TLS client's settings: detects whether they changed, and checks whether they are valid.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/file_stamp.hpp"
#include "weir/net/tls_client.hpp"

#include <chrono>
#include <optional>

namespace weir::net {

// Returns the present stamps of all files that a TLS context with these settings reads. If `ca` is empty,
// also returns the stamp of the file of the system's authorities, if the system has one.
[[nodiscard]] FileStamps stamps_of(const TlsClientSettings& settings);

// The certificate that weir shows to servers.
struct OwnCertificate {
  std::optional<std::chrono::sys_seconds> not_after{};  // absent: the settings have no certificate
};
// Reads and checks the files of the settings, without making a context. An error names the faulty file and
// says what is wrong with its content.
[[nodiscard]] base::Result<OwnCertificate> try_files(const TlsClientSettings& settings);

}  // namespace weir::net
