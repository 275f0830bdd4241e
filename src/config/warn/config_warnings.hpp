// Collects warnings about settings that are allowed but probably not intended, each with its location in the
// file.
#pragma once

#include "config/read/settings_sections.hpp"

#include <string>
#include <vector>

namespace weir::config {

class ConfigWarnings {
 public:
  // `context` must outlive this object.
  explicit ConfigWarnings(const ReadContext& context) noexcept : context_(context) {}

  // Adds a warning. `whose`: the thing that the warning is about, as a key of ReadContext::lines, such as
  // "[client]". For any other text, the location of the warning is the file without a line.
  void add(const std::string& whose, const std::string& what);
  void add(const policy::Rule& rule, const std::string& what);
  void add(const policy::Route& route, const std::string& what);
  // Adds a warning about the configuration file as a whole.
  void add(const std::string& what);
  // Adds a warning with a location in any file, such as "keys.toml:7".
  void add_at(const std::string& where, const std::string& what);

  // Returns the location of the thing `whose`, such as "weir.toml:14". Returns "weir.toml" if
  // ReadContext::lines does not have `whose`.
  [[nodiscard]] std::string where(const std::string& whose) const;

  [[nodiscard]] std::vector<Warning> take() noexcept { return std::move(found_); }

 private:
  const ReadContext& context_;
  std::vector<Warning> found_;
};

// Return the name of a rule or route for messages, such as `rule "login"`.
[[nodiscard]] std::string name_of(const policy::Rule& rule);
[[nodiscard]] std::string name_of(const policy::Route& route);

// Each function warn_of_… adds the warnings about one part of a configuration.
void warn_of_routes(const Settings& settings, ConfigWarnings& warnings);
void warn_of_rules(const Settings& settings, ConfigWarnings& warnings);
void warn_of_keys(const Settings& settings, ConfigWarnings& warnings);
void warn_of_matches(const Settings& settings, ConfigWarnings& warnings);

// Returns true if another rule limits each client address for the same requests. A rule with one counter for
// all clients is not enough, because one client could use up the limit for all others.
[[nodiscard]] bool is_bounded_by_address(const policy::Rule& rule, const Settings& settings);
// Returns true if an override has a higher limit for clients that send a certain header or query parameter.
[[nodiscard]] bool has_chosen_override(const policy::Rule& rule);

}  // namespace weir::config
