#include "admin/pages/query.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>

namespace weir::admin {

std::pair<std::string, std::string> take_parameter(std::string_view& query) {
  const auto parameter = query.substr(0, query.find('&'));
  query.remove_prefix(std::min(parameter.size() + 1, query.size()));
  const auto name = parameter.substr(0, parameter.find('='));
  const auto value = parameter.substr(std::min(name.size() + 1, parameter.size()));
  const auto decoded = [](std::string_view raw) {
    std::string scratch;
    return std::string(http::percent_decoded(raw, scratch, http::Plus::Blank));
  };
  return {decoded(name), decoded(value)};
}

}  // namespace weir::admin
