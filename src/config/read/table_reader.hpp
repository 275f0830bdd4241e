// One table of a configuration, read by its schema.
//
// The constructor checks every entry: an unknown key, a wrong type, one that is another table's, a missing
// one is noted. The accessors then give values, the schema's default where a key is absent. After a mistake
// they give some value of the type: the configuration is refused anyway, and reading goes on to find the next
// one.
#pragma once

#include "config/read/toml_reader.hpp"
#include "config/schema/schema.hpp"

#include "weir/base/endpoint.hpp"
#include "weir/base/time.hpp"
#include "weir/config/mistakes.hpp"
#include "weir/limit/rate.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

// Where a table stands: for messages. The strings and the list outlive every reader.
struct Place {
  const std::string* file;
  Mistakes* mistakes;
};

class TableReader {
 public:
  // `node` is a table or absent (null: everything takes its default). It outlives the reader.
  TableReader(const Node* node, int line, std::string path, const TableSpec& spec, Place place);

  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  // Whether the schema has the key.
  [[nodiscard]] bool knows(std::string_view key) const noexcept { return spec_->find(key) != nullptr; }
  // Whether the key stands there at all, rightly or not.
  [[nodiscard]] bool mentions(std::string_view key) const;
  // Whether the constructor found a mistake, so that what is missing may be what that entry meant.
  [[nodiscard]] bool flawed() const noexcept { return flawed_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Where it begins; of one that is absent, where that begins which it would stand in.
  [[nodiscard]] int line() const noexcept { return line_; }
  [[nodiscard]] const Place& place() const noexcept { return place_; }

  // REQUIRES of all accessors: the schema has the key, of that kind.
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;  // of Text and Choice; empty without a default
  [[nodiscard]] std::int64_t whole(std::string_view key) const;
  [[nodiscard]] std::optional<std::uint64_t> size(std::string_view key) const;
  [[nodiscard]] base::Duration duration(std::string_view key) const;
  // A duration that may not be zero, because a deadline of zero ends everything at once.
  [[nodiscard]] base::Duration deadline(std::string_view key) const;
  [[nodiscard]] std::optional<limit::Rate> rate(std::string_view key) const;     // of Rate and Limit
  [[nodiscard]] std::optional<std::uint64_t> count(std::string_view key) const;  // of Limit, at least 1
  [[nodiscard]] std::optional<base::Endpoint> address(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;  // of Texts and OneOrMore
  [[nodiscard]] TableReader table(std::string_view key, const TableSpec& spec) const;
  [[nodiscard]] std::vector<TableReader> tables(std::string_view key, const TableSpec& spec) const;
  // The entries of a table whose keys the user chooses.
  [[nodiscard]] const std::vector<Node>& named(std::string_view key) const;
  // As it stands; null when absent or refused already.
  [[nodiscard]] const Node* node(std::string_view key) const { return find(key); }

  // The position in `values`-like enumerations: which of the schema's choices was taken, counted from 0.
  template <class Enum>
  [[nodiscard]] Enum choice(std::string_view key) const {
    return static_cast<Enum>(choice_index(key));
  }

  // Notes a mistake at the key's line, or at the table's where it is absent. An empty key means the table.
  void mistake(std::string_view key, std::string_view what) const;
  // Of an element of the list that the key has: at its own line. Of what is no list as mistake().
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
  Place place_;
  const Node* node_;
  std::vector<const Node*> entries_;  // the good ones
  bool flawed_ = false;
};

}  // namespace weir::app
