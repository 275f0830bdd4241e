// Warnings while they are gathered: what is allowed and probably not meant, each with where it stands.
#pragma once

#include "config/read/settings_sections.hpp"

#include <string>
#include <vector>

namespace weir::app {

class Doubts {
 public:
  // `reading` outlives it.
  explicit Doubts(const Reading& reading) noexcept : reading_(reading) {}

  // `whose`: as Reading::lines has it; of anything else the file alone is named.
  void add(const std::string& whose, const std::string& what);
  void add(const policy::Rule& rule, const std::string& what);
  void add(const policy::Route& route, const std::string& what);
  // Of the file as a whole.
  void add(const std::string& what);
  // A warning at a place in any file, as "keys.toml:7".
  void add_at(const std::string& where, const std::string& what);

  // "weir.toml:14", or "weir.toml" where the line is not known.
  [[nodiscard]] std::string where(const std::string& whose) const;

  [[nodiscard]] std::vector<Warning> take() noexcept { return std::move(found_); }

 private:
  const Reading& reading_;
  std::vector<Warning> found_;
};

// How messages call them.
[[nodiscard]] std::string name_of(const policy::Rule& rule);
[[nodiscard]] std::string name_of(const policy::Route& route);

// One function for each part of a configuration.
void doubt_routes(const Settings& settings, Doubts& doubts);
void doubt_rules(const Settings& settings, Doubts& doubts);
void doubt_keys(const Settings& settings, Doubts& doubts);

}  // namespace weir::app
