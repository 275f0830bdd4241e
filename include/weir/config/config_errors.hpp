// Collects all mistakes in a configuration, so that the user sees them all after one attempt. The code that
// reads the configuration owns the object; not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

class ConfigErrors {
 public:
  // Adds a mistake. Replaces control characters with \xNN. `key`: the path of the setting, as in
  // "rule[per-key].limit"; empty if the mistake concerns the whole file.
  void add(std::string_view file, int line, std::string_view key, std::string_view what);

  [[nodiscard]] bool empty() const noexcept { return found_.empty(); }
  [[nodiscard]] std::size_t count() const noexcept { return found_.size(); }
  // Returns a line "FILE:LINE: KEY: WHAT" for each mistake. The mistakes are sorted by file, in the order in
  // which the files were read, and then by line.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Mistake {
    std::size_t file;  // index of the file in files_
    int line;
    std::string text;
  };
  std::vector<std::string> files_;
  std::vector<Mistake> found_;
};

// Returns the name in `names` with the smallest edit distance to `word`. Empty if no name is similar enough.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

// Returns the text `; did you mean "limit"?`, with the name most similar to `word`. If no name is similar
// enough, returns `; expected one of "a", "b"`.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string_view> names);

[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace weir::config
