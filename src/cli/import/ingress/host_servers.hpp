// The hosts of all Ingresses, and the servers of nginx that the controller makes of a host.
#pragma once

#include "cli/import/ingress/ingress_settings.hpp"
#include "cli/import/read/model.hpp"

#include <optional>
#include <string>
#include <vector>

namespace weir::cli::nginx {

// An Ingress that weir import reads.
struct ImportedIngress {
  const Ingress* ingress;
  IngressSettings settings;
};

// A path of a host, with the Ingress that has it.
struct HostPath {
  IngressPath path;
  const ImportedIngress* owner;
};

struct IngressHost {
  Position position;
  std::vector<HostPath> paths;
  std::vector<std::string> aliases;
  std::optional<Certificate>
      certificate;  // present: the host has TLS; without files if the secret is unknown
  std::string app_root;
  bool regex = false;  // all paths of the host are regular expressions
};

// Returns true if rewrite-target changes the path.
[[nodiscard]] bool rewrites(const HostPath& entry);

// Adds the servers of a host: one for http, and one for https if the host has TLS. `name`: empty for all
// other hosts. `any_tls`: another host has TLS.
void add_servers(const std::string& name, const IngressHost& host, bool any_tls, Configuration& result,
                 Notes& notes);

}  // namespace weir::cli::nginx
