#include "weir/policy/redaction.hpp"

#include "policy/pieces.hpp"
#include "policy/said.hpp"

#include <algorithm>
#include <array>

namespace weir::policy {

namespace {

// Whether `holds` is true of any parameter that something is read from.
template <class Holds>
bool any_parameter(const ClientSettings& settings, Holds holds) {
  const std::array sources{&settings.api_key, &settings.user, &settings.org, &settings.service,
                           &settings.device};
  return std::any_of(sources.begin(), sources.end(), [&](const Source* source) {
    return source->kind == Source::Kind::Query && holds(source->name);
  });
}

}  // namespace

std::string_view redacted(const ClientSettings& settings, std::string_view target, std::string& scratch) {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos || !any_parameter(settings, [](const auto&) { return true; }))
    return target;
  scratch.assign(target.substr(0, mark));
  bool hidden = false;
  char before = '?';
  for (auto query = target.substr(mark + 1); !query.empty(); before = '&') {
    const auto parameter = take_piece(query, '&');
    const auto name = parameter.substr(0, parameter.find('='));
    const auto is_named = [&](const std::string& wanted) { return is_parameter(name, wanted); };
    const bool secret = name.size() < parameter.size() && any_parameter(settings, is_named);
    hidden = hidden || secret;
    scratch += before;
    scratch += secret ? name : parameter;
    if (secret) scratch += "=***";
  }
  return hidden ? std::string_view(scratch) : target;
}

}  // namespace weir::policy
