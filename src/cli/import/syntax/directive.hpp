// The syntax tree of an nginx configuration: directives with their arguments and blocks.
#pragma once

#include "cli/import/syntax/nginx_values.hpp"

#include <memory>
#include <string>
#include <vector>

namespace weir::cli::nginx {

// Where a directive begins.
struct Position {
  std::shared_ptr<const std::string> file;  // shared by all directives of a file
  unsigned line = 0;                        // from 1

  [[nodiscard]] std::string text() const {
    return (file ? printable(*file) : std::string()) + ":" + std::to_string(line);
  }
};

struct Directive {
  Position position;
  std::string name;
  std::vector<std::string> arguments;  // without quotes and escapes
  std::vector<Directive> block{};
  bool has_block = false;
};

using Directives = std::vector<Directive>;

}  // namespace weir::cli::nginx
