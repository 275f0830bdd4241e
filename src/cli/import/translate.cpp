#include "cli/import/translate.hpp"

#include "cli/import/read/read_configuration.hpp"
#include "cli/import/write/layout.hpp"
#include "cli/import/write/write_toml.hpp"

namespace weir::cli::nginx {

base::Result<std::string> translate(const Directives& directives, const std::string& folder, Notes& notes) {
  const auto configuration = read_configuration(directives, folder, notes);
  if (configuration.servers.empty()) return base::Error{"there is no server block; weir import needs one"};
  const auto layout = arrange(configuration, notes);
  if (layout.listeners.empty()) return base::Error{"no listener is left; weir import needs one"};
  auto rules = write_rules(configuration, layout, notes);
  return base::Result<std::string>(boost::system::in_place_value, write_front(configuration, layout) +
                                                                      write_upstreams(configuration, layout) +
                                                                      write_routes(layout) +
                                                                      std::move(rules));
}

}  // namespace weir::cli::nginx
