// Small configurations for the tests in this folder.
#pragma once

#include "weir/config/settings.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace weir::config::test {

inline const std::string kFile = "weir.toml";

// The smallest valid configuration. The configuration has ten lines, so text that a test appends begins on
// line 11.
inline const std::string kLeast = R"([[listener]]
address = "127.0.0.1:8080"
[[upstream]]
name = "api"
servers = ["127.0.0.1:9001"]
[[route]]
upstream = "api"
[[rule]]
name = "all"
limit = "10/s"
)";

inline std::string with(const std::string& more) {
  return kLeast + more;
}

// Returns a configuration with a rule "x" on line 11, which has no limit. The text `more` begins on line 13.
inline std::string rule(const std::string& more = "") {
  return with("[[rule]]\nname = \"x\"\n" + more);
}

// Returns a configuration with a rule "x" on line 11, whose limit is on line 13. The text `more` begins on
// line 14.
inline std::string with_rule(const std::string& more) {
  return with("[[rule]]\nname = \"x\"\nlimit = \"10/s\"\n" + more);
}

// Returns a configuration with a rule "y" on line 13, which keeps its state in Redis. The text `more` begins
// on line 16.
inline std::string leased(const std::string& more) {
  return with("[state]\nredis = { url = \"redis://a\" }\n[[rule]]\nname = \"y\"\nstore = \"redis\"\n" + more);
}

inline Settings parse(const std::string& text) {
  return parse_settings(text, kFile);
}

inline std::vector<std::string> mistakes_in(const std::string& text, const std::string& file = kFile) {
  try {
    (void)parse_settings(text, file);
  } catch (const ConfigError& error) {
    return error.mistakes();
  }
  return {};
}

// A temporary folder. The destructor removes it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

// Sets an environment variable while the object exists.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Returns the path of a configuration file in weir's folder config/.
inline std::string shipped(const std::string& name) {
  return (std::filesystem::path(WEIR_TREE) / "config" / name).string();
}

inline std::string contents(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace weir::config::test
