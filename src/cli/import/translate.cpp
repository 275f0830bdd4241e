#include "cli/import/translate.hpp"

#include "cli/import/ingress/ingress_servers.hpp"
#include "cli/import/ingress/yaml.hpp"
#include "cli/import/read/read_configuration.hpp"
#include "cli/import/write/layout.hpp"
#include "cli/import/write/write_toml.hpp"

#include <set>
#include <utility>
#include <vector>

namespace weir::cli::nginx {

namespace {

base::Result<std::string> write(const Configuration& configuration, Notes& notes) {
  const auto layout = arrange(configuration, notes);
  if (layout.listeners.empty()) return base::Error{"no listener is left; weir import needs one"};
  auto rules = write_rules(configuration, layout, notes);
  return base::Result<std::string>(boost::system::in_place_value, write_front(configuration, layout) +
                                                                      write_upstreams(configuration, layout) +
                                                                      write_routes(layout) +
                                                                      std::move(rules));
}

// Returns why the Ingresses cannot be translated into one configuration; empty if they can.
std::string fault_of(const std::vector<Ingress>& ingresses) {
  if (ingresses.empty()) return "there is no Ingress; weir import needs one";
  std::set<std::string> classes;
  for (const auto& ingress : ingresses) classes.insert(ingress.class_name);
  if (classes.size() == 1) return {};
  std::string names;
  for (const auto& name : classes)
    names += (names.empty() ? "" : ", ") + (name.empty() ? "none" : printable(name));
  return "the Ingresses have several classes (" + names +
         "), which controllers may keep apart; import the Ingresses of one class";
}

}  // namespace

base::Result<std::string> translate(const Directives& directives, const std::string& folder, Notes& notes) {
  const auto configuration = read_configuration(directives, folder, notes);
  if (configuration.servers.empty()) return base::Error{"there is no server block; weir import needs one"};
  return write(configuration, notes);
}

base::Result<std::string> translate_ingresses(std::string_view text, const std::string& file, Notes& notes) {
  const auto documents = parse_yaml(text, file);
  if (!documents) return documents.error();
  const auto ingresses = read_ingresses(*documents, file, notes);
  if (auto fault = fault_of(ingresses); !fault.empty()) return base::Error{std::move(fault)};
  return write(configuration_of(ingresses, notes), notes);
}

}  // namespace weir::cli::nginx
