#include "weir/cli/command_line.hpp"
#include "weir/cli/process_one.hpp"
#include "weir/net/memory/tls_memory.hpp"

int main(int argc, char** argv) {
  weir::cli::prepare_as_process_one();
  weir::net::recycle_tls_memory();
  return weir::cli::run_command_line(argc, argv);
}
