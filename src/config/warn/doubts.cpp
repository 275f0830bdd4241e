#include "config/warn/doubts.hpp"

namespace weir::app {

void Doubts::add(const std::string& whose, const std::string& what) {
  found_.push_back({where(whose), whose + " " + what});
}

void Doubts::add(const policy::Rule& rule, const std::string& what) {
  add(name_of(rule), what);
}

void Doubts::add(const policy::Route& route, const std::string& what) {
  add(name_of(route), what);
}

void Doubts::add(const std::string& what) {
  found_.push_back({reading_.file, what});
}

void Doubts::add_at(const std::string& where, const std::string& what) {
  found_.push_back({where, what});
}

std::string Doubts::where(const std::string& whose) const {
  const auto line = reading_.lines.find(whose);
  return line == reading_.lines.end() ? reading_.file : reading_.file + ":" + std::to_string(line->second);
}

std::string name_of(const policy::Rule& rule) {
  return "rule " + in_quotes(rule.name);
}

std::string name_of(const policy::Route& route) {
  return "route " + in_quotes(route.name);
}

}  // namespace weir::app
