#include "config/warn/config_warnings.hpp"

namespace weir::config {

void ConfigWarnings::add(const std::string& whose, const std::string& what) {
  found_.push_back({where(whose), whose + " " + what});
}

void ConfigWarnings::add(const policy::Rule& rule, const std::string& what) {
  add(name_of(rule), what);
}

void ConfigWarnings::add(const policy::Route& route, const std::string& what) {
  add(name_of(route), what);
}

void ConfigWarnings::add(const std::string& what) {
  found_.push_back({context_.file, what});
}

void ConfigWarnings::add_at(const std::string& where, const std::string& what) {
  found_.push_back({where, what});
}

std::string ConfigWarnings::where(const std::string& whose) const {
  const auto line = context_.lines.find(whose);
  return line == context_.lines.end() ? context_.file : context_.file + ":" + std::to_string(line->second);
}

std::string name_of(const policy::Rule& rule) {
  return "rule " + in_quotes(rule.name);
}

std::string name_of(const policy::Route& route) {
  return "route " + in_quotes(route.name);
}

}  // namespace weir::config
