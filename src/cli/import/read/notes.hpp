// Collects the report of weir import: the directives of nginx that have no equal in weir, or a different one.
#pragma once

#include "cli/import/syntax/directive.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

struct Note {
  Position position;
  std::string directive;  // its name
  std::string text;       // "no equal", or what differs; then what to write instead

  [[nodiscard]] std::string line() const {
    return position.text() + ": " + printable(directive) + ": " + printable(text);
  }
};

class Notes {
 public:
  void add(const Directive& directive, std::string text);
  void add(const Position& position, std::string name, std::string text);

  // Adds a note on a directive that weir import does not translate. Adds none if the directive has no
  // meaning for weir, such as `sendfile`.
  void add_untranslated(const Directive& directive);

  // Returns the notes in the order of their files and lines. Equal notes appear once.
  [[nodiscard]] std::vector<Note> sorted() const;

 private:
  std::vector<Note> notes_;
  std::vector<std::string> files_;  // in the order of their first notes
};

}  // namespace weir::cli::nginx
