// Reads the annotations of an Ingress: nginx.ingress.kubernetes.io/…
#pragma once

#include "cli/import/ingress/ingress.hpp"
#include "cli/import/read/read_scope.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

struct IngressSettings {
  Scope scope;                          // with `guards` if weir must not forward: they are closed
  std::string scheme = "http";          // towards the servers; empty: weir has no equal for the protocol
  bool regex = false;                   // use-regex
  std::string rewrite{};                // rewrite-target
  bool to_https = true;                 // ssl-redirect: redirects to https if the host has a certificate
  bool always_to_https = false;         // force-ssl-redirect
  std::vector<std::string> redirect{};  // words of nginx's `return`: a status and a URL; empty: none
  Position redirect_position{};
  std::string app_root{};
  std::vector<std::string> aliases{};
  bool left_out = false;  // the Ingress is not imported
  Fields preflight{};     // fields of the answers to OPTIONS of enable-cors; empty: they are forwarded
};

// Reads the annotations, and adds the zones of the limits to the configuration. Adds a note for each
// annotation that has no equal. A demand that weir cannot make closes the Ingress (Scope::guards).
[[nodiscard]] IngressSettings read_annotations(const Ingress& ingress, ImportState& state);

}  // namespace weir::cli::nginx
