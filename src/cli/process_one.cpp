#include "weir/cli/process_one.hpp"

#include <csignal>
#include <cstdlib>

#include <unistd.h>

namespace weir::cli {

namespace {

void end(int signal) {
  constexpr int kEndedBySignal = 128;  // shells add this number to the number of the signal
  std::_Exit(kEndedBySignal + signal);
}

}  // namespace

void prepare_as_process_one() {
  if (::getpid() != 1) return;
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, end);
  std::signal(SIGCHLD, SIG_IGN);
}

}  // namespace weir::cli
