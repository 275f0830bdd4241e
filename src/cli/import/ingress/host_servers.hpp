// Translates the hosts of all Ingresses into the nginx servers that ingress-nginx makes of them.
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

// A path of a host, with the Ingress that declares the path.
struct HostPath {
  IngressPath path;
  const ImportedIngress* owner;
};

struct IngressHost {
  Position position;
  std::vector<HostPath> paths;
  std::vector<std::string> aliases;
  std::optional<Certificate>
      // Present if the host has TLS. Its file names are empty if the TLS secret is unknown.
      certificate;
  std::string app_root;
  bool regex = false;  // true: all paths of the host are regular expressions
};

// Returns true if rewrite-target changes the path.
[[nodiscard]] bool rewrites(const HostPath& entry);

// Adds one server for http, and one for https if the host has TLS. An empty `name` stands for all hosts that
// no Ingress names. `any_tls`: true if any host has TLS. The server for all hosts without an Ingress then has
// TLS, too.
void add_servers(const std::string& name, const IngressHost& host, bool any_tls, Configuration& result,
                 Notes& notes);

}  // namespace weir::cli::nginx
