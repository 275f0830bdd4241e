#include "weir/cli/command_line.hpp"

int main(int argc, char** argv) {
  return weir::cli::run_command_line(argc, argv);
}
