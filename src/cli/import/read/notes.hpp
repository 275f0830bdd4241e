// Collects the report of weir import: the nginx directives that weir cannot translate exactly.
#pragma once

#include "cli/import/syntax/directive.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

struct Note {
  Position position;
  std::string directive;  // name of the directive
  std::string text;       // "no equal" or the difference; then what to write in weir's configuration

  [[nodiscard]] std::string line() const {
    return position.text() + ": " + printable(directive) + ": " + printable(text);
  }
};

class Notes {
 public:
  void add(const Directive& directive, std::string text);
  void add(const Position& position, std::string name, std::string text);

  // Adds a note on a directive that weir import does not translate. Adds no note if the directive has no
  // meaning for weir, such as `sendfile`.
  void add_untranslated(const Directive& directive);

  // Returns the notes in the order of their files and lines. Equal notes appear once.
  [[nodiscard]] std::vector<Note> sorted() const;

 private:
  std::vector<Note> notes_;
  std::vector<std::string> files_;  // in the order of their first notes
};

}  // namespace weir::cli::nginx
