// Collects warnings about settings that are allowed but probably not intended, each with its place.
#pragma once

#include "config/read/settings_sections.hpp"

#include <string>
#include <vector>

namespace weir::config {

class ConfigWarnings {
 public:
  // `context` outlives this object.
  explicit ConfigWarnings(const ReadContext& context) noexcept : context_(context) {}

  // `whose`: a name of ReadContext::lines. For any other name the warning shows the file alone.
  void add(const std::string& whose, const std::string& what);
  void add(const policy::Rule& rule, const std::string& what);
  void add(const policy::Route& route, const std::string& what);
  // Adds a warning about the file as a whole.
  void add(const std::string& what);
  // Adds a warning at a place in any file, such as "keys.toml:7".
  void add_at(const std::string& where, const std::string& what);

  // Returns "weir.toml:14", or "weir.toml" if the line is not known.
  [[nodiscard]] std::string where(const std::string& whose) const;

  [[nodiscard]] std::vector<Warning> take() noexcept { return std::move(found_); }

 private:
  const ReadContext& context_;
  std::vector<Warning> found_;
};

// Return the name of a rule or route in messages.
[[nodiscard]] std::string name_of(const policy::Rule& rule);
[[nodiscard]] std::string name_of(const policy::Route& route);

// Add the warnings about one part of a configuration.
void warn_of_routes(const Settings& settings, ConfigWarnings& warnings);
void warn_of_rules(const Settings& settings, ConfigWarnings& warnings);
void warn_of_keys(const Settings& settings, ConfigWarnings& warnings);
void warn_of_matches(const Settings& settings, ConfigWarnings& warnings);

// Returns true if another rule limits each address for the same requests. A rule that counts all clients
// together does not do: one client could use it up for everybody.
[[nodiscard]] bool is_bounded_by_address(const policy::Rule& rule, const Settings& settings);
// Returns true if a client gets higher numbers of the rule by a header or a query that it writes.
[[nodiscard]] bool has_chosen_override(const policy::Rule& rule);

}  // namespace weir::config
