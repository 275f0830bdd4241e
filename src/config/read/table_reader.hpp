// Reads one table of a configuration according to its schema.
//
// The constructor checks every entry. It reports unknown keys, wrong types, keys that belong to another
// table, and missing keys. The other functions then return values. For an absent key they return the schema's
// default. After a mistake they return an arbitrary value of the right type: the configuration is rejected
// anyway, and reading continues only to find more mistakes.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/config/config_errors.hpp"
#include "weir/limit/rate.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// The file that contains a table, and the list of mistakes in the file. The file and the list must outlive
// every reader.
struct SourceFile {
  const std::string* file;
  ConfigErrors* mistakes;
};

class TableReader {
 public:
  // `node`: a table, which must outlive the reader; null if the table is absent, so that all its keys have
  // their defaults. `line`, `path`: the location of the table, for messages.
  TableReader(const Node* node, int line, std::string path, const TableSpec& spec, SourceFile source_file);

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  // Returns true if the schema of the table has the key.
  [[nodiscard]] bool knows(std::string_view key) const noexcept { return spec_->find(key) != nullptr; }
  // Returns true if the file has the key, even with a mistake.
  [[nodiscard]] bool mentions(std::string_view key) const;
  // Returns true if the table has an unknown key whose spelling is close to this key.
  [[nodiscard]] bool misspells(std::string_view key) const;
  // Returns true if the constructor found a mistake. The file may then seem to lack a key that the user
  // misspelled.
  [[nodiscard]] bool flawed() const noexcept { return flawed_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Returns the line of the table. For an absent table, returns the line of the table that would contain it.
  [[nodiscard]] int line() const noexcept { return line_; }
  [[nodiscard]] const SourceFile& source_file() const noexcept { return source_file_; }

  // The functions below return the values of keys. REQUIRES that the schema has the key, and that the
  // function is for the kind of the key.
  [[nodiscard]] bool boolean(std::string_view key) const;
  // Returns a string (kinds Text and Choice); empty if the key is absent and has no default.
  [[nodiscard]] std::string text(std::string_view key) const;
  [[nodiscard]] std::int64_t whole(std::string_view key) const;
  [[nodiscard]] std::optional<std::uint64_t> size(std::string_view key) const;
  [[nodiscard]] base::Duration duration(std::string_view key) const;
  // Returns a duration. Reports zero as a mistake, because every request would exceed a deadline of zero.
  [[nodiscard]] base::Duration deadline(std::string_view key) const;
  [[nodiscard]] std::optional<limit::Rate> rate(std::string_view key) const;     // kinds Rate and Limit
  [[nodiscard]] std::optional<std::uint64_t> count(std::string_view key) const;  // kind Limit; at least 1
  [[nodiscard]] std::optional<base::Endpoint> address(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;  // kinds Texts and OneOrMore
  [[nodiscard]] TableReader table(std::string_view key, const TableSpec& spec) const;
  [[nodiscard]] std::vector<TableReader> tables(std::string_view key, const TableSpec& spec) const;
  // Returns the entries of a table whose keys are names that the user chooses.
  [[nodiscard]] const std::vector<Node>& named(std::string_view key) const;
  // Returns the key's entry in the file; null if the file has no such entry, or if the entry has a mistake.
  [[nodiscard]] const Node* node(std::string_view key) const { return find(key); }

  // Returns the chosen word as an enumerator. The number of the enumerator is the position of the word in the
  // schema's list of choices.
  template <class Enum>
  [[nodiscard]] Enum choice(std::string_view key) const {
    return static_cast<Enum>(choice_index(key));
  }

  // Reports a mistake at the line of the key. If the key is absent or `key` is empty, reports the mistake at
  // the line of the table.
  void mistake(std::string_view key, std::string_view what) const;
  // Reports a mistake at the line of an element of the key's list. If the value is not a list, reports the
  // mistake at the line of the key.
  void mistake_in(std::string_view key, std::size_t position, std::string_view what) const;
  void mistake_at(int line, std::string_view path, std::string_view what) const;
  void missing(std::string_view key, std::string_view expected) const;

 private:
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] const KeySpec& spec_of(std::string_view key, std::initializer_list<Kind> kinds) const;
  [[nodiscard]] std::size_t choice_index(std::string_view key) const;
  void check_entry(const Node& entry);
  [[nodiscard]] bool well_typed(const Node& entry, const KeySpec& spec) const;
  [[nodiscard]] std::string header_instead(const Node& entry, const KeySpec& spec) const;
  [[nodiscard]] bool in_choices(const std::string& word, const Node& entry, const KeySpec& spec) const;
  using Nearest = std::optional<std::string> (*)(std::string_view text);
  template <class T, class Parse>
  [[nodiscard]] std::optional<T> parsed(std::string_view key, Parse parse, Nearest nearest = nullptr) const;

  int line_;
  std::string path_;
  const TableSpec* spec_;
  SourceFile source_file_;
  const Node* node_;
  std::vector<const Node*> entries_;  // entries without a mistake
  bool flawed_ = false;
};

}  // namespace weir::config
