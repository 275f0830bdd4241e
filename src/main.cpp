#include "weir/cli/command_line.hpp"
#include "weir/cli/process_one.hpp"
#include "weir/cli/standard_streams.hpp"

int main(int argc, char** argv) {
  weir::cli::open_standard_streams();
  weir::cli::prepare_as_process_one();
  return weir::cli::run_command_line(argc, argv);
}
