// Reads the annotations of an Ingress: nginx.ingress.kubernetes.io/…
#pragma once

#include "cli/import/ingress/ingress.hpp"
#include "cli/import/read/read_scope.hpp"

#include <string>
#include <vector>

namespace weir::cli::nginx {

struct IngressSettings {
  Scope scope;                          // if Scope::guards is not empty, weir must answer 403
  std::string scheme = "http";          // protocol of the servers; empty: one that weir does not speak
  bool regex = false;                   // use-regex
  std::string rewrite{};                // rewrite-target
  bool to_https = true;                 // ssl-redirect: redirects to https if the host has a certificate
  bool always_to_https = false;         // force-ssl-redirect
  std::vector<std::string> redirect{};  // words of nginx's `return`: a status and a URL; empty: none
  Position redirect_position{};
  std::string app_root{};
  std::vector<std::string> aliases{};
  bool left_out = false;  // the Ingress is not imported
  Fields preflight{};     // fields of answers to preflights (enable-cors); empty: weir forwards preflights
};

// Reads the annotations, and adds the zones of the limits to the configuration. Adds a note for each
// annotation that weir cannot translate. If weir cannot enforce what an annotation demands, closes the
// Ingress: with Scope::guards, weir answers 403 to its requests.
[[nodiscard]] IngressSettings read_annotations(const Ingress& ingress, ImportState& state);

}  // namespace weir::cli::nginx
