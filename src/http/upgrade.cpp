#include "weir/http/upgrade.hpp"

#include "http/token.hpp"
#include "http/token_list.hpp"

#include <algorithm>

namespace weir::http {

namespace {

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_tchar);
}

}  // namespace

std::string_view protocol_to_ask(const RequestHead& head, std::span<const std::string> allowed) noexcept {
  std::string_view chosen;
  if (!head.wants_upgrade || head.framing != Framing::None) return chosen;
  for (const auto& field : head.fields) {
    if (field.id != FieldId::Upgrade) continue;
    for_each_token(field.value, [&](std::string_view asked) {
      if (!chosen.empty()) return;
      for (const auto& each : allowed)
        if (equal_ignoring_case(each, asked)) chosen = each;
    });
  }
  return chosen;
}

bool switches_to(const ResponseHead& head, std::string_view protocol) noexcept {
  std::size_t named = 0;
  std::size_t others = 0;
  for (const auto& field : head.fields) {
    if (field.id != FieldId::Upgrade) continue;
    for_each_token(field.value,
                   [&](std::string_view each) { ++(equal_ignoring_case(each, protocol) ? named : others); });
  }
  return head.wants_upgrade && named == 1 && others == 0;
}

bool may_be_allowed(std::string_view name) noexcept {
  const auto slash = name.find('/');
  const auto protocol = name.substr(0, slash);
  if (!is_token(protocol) || (slash != std::string_view::npos && !is_token(name.substr(slash + 1))))
    return false;
  for (const std::string_view carrier : {"http", "h2c", "h2", "tls"})
    if (equal_ignoring_case(protocol, carrier)) return false;
  return true;
}

}  // namespace weir::http
