#include "weir/cli/standard_streams.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace weir::cli {

void open_standard_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    // open() returns the lowest free number, which is `stream`.
    (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace weir::cli
