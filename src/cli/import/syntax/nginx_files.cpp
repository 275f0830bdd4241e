#include "cli/import/syntax/nginx_files.hpp"

#include "cli/import/syntax/nginx_parser.hpp"

#include "weir/net/file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <glob.h>

namespace weir::cli::nginx {

namespace {

// Called by glob() for a folder that it cannot read. Returns 0, so that glob() continues, if the folder does
// not exist.
int stop_at_unreadable(const char*, int error) {
  return error == ENOENT || error == ENOTDIR ? 0 : error;
}

// Returns the files that match a pattern, sorted by name, as nginx includes them.
base::Result<std::vector<std::string>> files_of_pattern(const std::string& pattern) {
  glob_t found{};
  errno = 0;
  const int failed = ::glob(pattern.c_str(), 0, stop_at_unreadable, &found);
  const int error = errno;
  std::vector<std::string> names;
  if (failed == 0) names.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (failed == GLOB_NOSPACE) return base::Error{pattern + ": not enough memory to find its files"};
  if (failed != 0 && failed != GLOB_NOMATCH)
    return base::Error{pattern + ": cannot read a folder: " + std::strerror(error)};
  return base::Result<std::vector<std::string>>(boost::system::in_place_value, std::move(names));
}

class FileReader {
 public:
  explicit FileReader(const std::string& file) : folder_(std::filesystem::path(file).parent_path()) {}

  // Appends the directives of a file. Returns an error if this fails. `where`: the position of the `include`,
  // for error messages.
  std::optional<base::Error> read(const std::string& file, const std::string& where, Directives& into,
                                  std::size_t depth) {
    if (++files_ > kMostFiles)
      return base::Error{where + file + ": more than " + std::to_string(kMostFiles) + " files"};
    const auto text = net::read_file(file, kLargestNginxFile);
    if (!text) return base::Error{where + file + ": " + text.error().message};
    auto parsed = parse_nginx(*text, file);
    if (!parsed) return parsed.error();
    return expand(*parsed, into, depth);
  }

 private:
  // Moves the directives, and replaces each `include` by the directives of its files.
  std::optional<base::Error> expand(Directives& from, Directives& into, std::size_t depth) {
    for (auto& directive : from) {
      if (directive.name == "include" && directive.arguments.size() == 1 && !directive.has_block) {
        if (const auto fault = include(directive, into, depth)) return fault;
        continue;
      }
      Directives inner;
      if (const auto fault = expand(directive.block, inner, depth)) return fault;
      directive.block = std::move(inner);
      into.push_back(std::move(directive));
    }
    return std::nullopt;
  }

  std::optional<base::Error> include(const Directive& directive, Directives& into, std::size_t depth) {
    const auto where = directive.position.text() + ": ";
    if (depth == kMostIncludeDepth)
      return base::Error{where + "files include files more than " + std::to_string(kMostIncludeDepth) +
                         " deep"};
    const auto& pattern = directive.arguments.front();
    const auto name = (folder_ / pattern).string();
    const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
    const auto files = is_pattern ? files_of_pattern(name) : std::vector{name};
    if (!files) return base::Error{where + "include: " + files.error().message};
    for (const auto& file : *files)
      if (auto fault = read(file, where + "include: ", into, depth + 1)) return fault;
    return std::nullopt;
  }

  std::filesystem::path folder_;
  std::size_t files_ = 0;
};

}  // namespace

base::Result<Directives> read_nginx_files(const std::string& file) {
  Directives all;
  if (const auto fault = FileReader(file).read(file, "", all, 0)) return *fault;
  return base::Result<Directives>(boost::system::in_place_value, std::move(all));
}

}  // namespace weir::cli::nginx
