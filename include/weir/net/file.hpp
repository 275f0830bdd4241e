// Reads files that the configuration names. Only a regular file is read. A named pipe, a socket or a device
// could block forever, and a directory has no text.
#pragma once

#include "weir/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weir::net {

// The maximum size in bytes of a file that the configuration names. kLargestText applies to the configuration
// itself and to the keys file, kLargestFile to all other files. A larger file is an error.
inline constexpr std::size_t kLargestText = 256 << 20;
inline constexpr std::size_t kLargestFile = 16 << 20;

// Whether read_file() accepts a pipe without a name. Examples are /dev/stdin behind "|", and the shell's
// <(command). Reading from a pipe waits for the command at its other end.
enum class UnnamedPipe : std::uint8_t { Reject, Accept };

// Returns the content of a regular file. Follows symbolic links. The error says why the file cannot be read:
// the system's reason, a type other than a regular file, or a size of more than `most` bytes.
[[nodiscard]] base::Result<std::string> read_file(const std::string& path, std::size_t most = kLargestFile,
                                                  UnnamedPipe pipe = UnnamedPipe::Reject);

// Returns why read_file() could not open the file, or nullopt if it could. Must be called before a library
// opens a file by its name.
[[nodiscard]] std::optional<base::Error> fault_of_file(const std::string& path);

}  // namespace weir::net
