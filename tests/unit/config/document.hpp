// Parses Markdown into tables and code blocks, for tests that compare the documentation with weir.
#pragma once

#include "unit/config/configuration.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config::test {

using Cells = std::vector<std::string>;

// A Markdown table: a header such as `| at | left |`, a line of dashes, and rows.
struct DocumentTable {
  int line = 0;  // line of the header
  Cells header;
  std::vector<Cells> rows;

  // Returns the row's cell in the column `heading`; empty if the table does not have the column.
  [[nodiscard]] std::string cell(const Cells& row, std::string_view heading) const {
    const auto at = std::ranges::find(header, heading) - header.begin();
    return static_cast<std::size_t>(at) < row.size() ? row[static_cast<std::size_t>(at)] : "";
  }
};

// The part of a document from one heading up to the next heading.
struct Section {
  std::string heading;  // the heading without the #
  std::string toml;     // the section's TOML code blocks, one after another
  std::vector<DocumentTable> tables;
};

inline std::string stripped(std::string_view text) {
  const auto first = text.find_first_not_of(' ');
  if (first == text.npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// Returns the cells of a row, which begins and ends with '|'. In a cell, a backslash before '|' means the
// character '|'.
inline Cells cells_of(std::string_view line) {
  Cells cells;
  std::string cell;
  for (std::size_t at = 1; at < line.size(); ++at) {
    if (line.substr(at, 2) == "\\|") {
      cell += line[++at];
    } else if (line[at] == '|') {
      cells.push_back(stripped(cell));
      cell.clear();
    } else {
      cell += line[at];
    }
  }
  return cells;
}

class DocumentReader {
 public:
  std::vector<Section> sections{1};

  void read(std::string_view line) {
    ++number_;
    if (line.starts_with("```"))
      fence(line);
    else if (in_code_)
      in_toml_ ? sections.back().toml.append(line).append("\n") : sections.back().toml;
    else if (line.starts_with('#'))
      sections.push_back(
          {.heading = stripped(line.substr(line.find_first_not_of('#'))), .toml = {}, .tables = {}});
    else
      row(line);
    in_table_ = line.starts_with('|');
  }

 private:
  void fence(std::string_view line) {
    in_toml_ = line == "```toml";
    in_code_ = !in_code_;
  }
  void row(std::string_view line) {
    if (!line.starts_with('|') || line.starts_with("|-") || line.starts_with("|:")) return;
    auto& tables = sections.back().tables;
    if (in_table_)
      tables.back().rows.push_back(cells_of(line));
    else
      tables.push_back({.line = number_, .header = cells_of(line), .rows = {}});
  }

  int number_ = 0;
  bool in_code_ = false, in_toml_ = false, in_table_ = false;
};

inline std::vector<Section> document(const std::string& name) {
  std::ifstream file(shipped("../docs/" + name));
  DocumentReader reader;
  for (std::string line; std::getline(file, line);) reader.read(line);
  return reader.sections;
}

inline std::vector<Section> limiters_document() {
  return document("limiters.md");
}

}  // namespace weir::config::test
