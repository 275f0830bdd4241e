#include "weir/policy/redaction.hpp"

#include "policy/identity/consistent_value.hpp"
#include "policy/rules/pieces.hpp"

#include <algorithm>

namespace weir::policy {

Redaction::Redaction(const ClientSettings& client)
    : names_{"access_token"}, descriptors_{"access_token", "authorization"} {
  for (const auto* source : {&client.api_key, &client.user, &client.org, &client.service, &client.device})
    if (source->kind == Source::Kind::Query) {
      names_.push_back(source->name);
      descriptors_.push_back(source->name);
    }
}

void Redaction::hide(const KeyPattern& key) {
  for (const auto& part : key)
    for (const auto& attribute : part) {
      if (attribute.kind == Attribute::Query) names_.push_back(attribute.name);
      if (attribute.kind == Attribute::Descriptor) descriptors_.push_back(attribute.name);
    }
}

bool Redaction::hides_descriptor(std::string_view name) const noexcept {
  return std::find(descriptors_.begin(), descriptors_.end(), name) != descriptors_.end();
}

std::string_view Redaction::redacted(std::string_view target, std::string& scratch) const {
  const auto mark = target.find('?');
  if (mark == std::string_view::npos || names_.empty()) return target;
  scratch.assign(target.substr(0, mark));
  bool hidden = false;
  char before = '?';
  for (auto query = target.substr(mark + 1); !query.empty(); before = '&') {
    const auto parameter = take_piece(query, '&');
    const auto name = parameter.substr(0, parameter.find('='));
    const bool secret = name.size() < parameter.size() &&
                        std::any_of(names_.begin(), names_.end(),
                                    [&](const auto& wanted) { return is_parameter(name, wanted); });
    hidden = hidden || secret;
    scratch += before;
    scratch += secret ? name : parameter;
    if (secret) scratch.append("=").append(kHiddenValue);
  }
  return hidden ? std::string_view(scratch) : target;
}

bool hides_value(std::string_view query, std::string_view name) noexcept {
  while (!query.empty()) {
    const auto said = name_value(take_piece(query, '&'));
    if (said.value == kHiddenValue && is_parameter(said.name, name)) return true;
  }
  return false;
}

}  // namespace weir::policy
