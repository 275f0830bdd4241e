// What is wrong with a configuration, gathered while it is read, so that a person sees all of it at once.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

class Mistakes {
 public:
  // Control characters are shown as \xNN. `key`: the dotted path as in "rule[per-key].limit"; empty where the
  // whole file is meant.
  void add(std::string_view file, int line, std::string_view key, std::string_view what);

  [[nodiscard]] bool empty() const noexcept { return found_.empty(); }
  [[nodiscard]] std::size_t count() const noexcept { return found_.size(); }
  // "FILE:LINE: KEY: WHAT", in the order of the files read and, in each, of its lines.
  [[nodiscard]] std::vector<std::string> lines() const;

 private:
  struct Mistake {
    std::size_t file;  // index into files_
    int line;
    std::string text;
  };
  std::vector<std::string> files_;
  std::vector<Mistake> found_;
};

// The name nearest to `word` by edit distance; empty where none is near enough to be meant.
[[nodiscard]] std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

// `; did you mean "limit"?`, or where nothing is near `; expected one of "a", "b"`.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string_view> names);

[[nodiscard]] std::string in_quotes(std::string_view text);

}  // namespace weir::app
