// Kubernetes Ingresses (networking.k8s.io/v1) as weir import reads them.
#pragma once

#include "cli/import/ingress/yaml.hpp"
#include "cli/import/read/notes.hpp"
#include "cli/import/syntax/directive.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weir::cli::nginx {

struct Annotation {
  Position position;
  std::string value;
};

// The Service behind a path. `port` is a number, or empty if the Ingress gives only a name of a port.
struct ServiceRef {
  std::string name, port;
};

struct IngressPath {
  Position position;
  std::string path;
  std::string type;  // Exact, Prefix or ImplementationSpecific
  ServiceRef service;
};

struct IngressRule {
  Position position;
  std::string host;  // empty: all hosts
  std::vector<IngressPath> paths;
};

struct IngressTls {
  Position position;
  std::vector<std::string> hosts;  // empty: all hosts of the Ingress
  std::string secret;              // empty: the default certificate of ingress-nginx
};

struct Ingress {
  Position position;
  std::string space{}, name{};  // from metadata; a missing namespace is "default"
  std::string created{};        // creationTimestamp; if two Ingresses have the same path, the older one wins
  std::string class_name{};     // empty: no class
  std::map<std::string, Annotation> annotations{};  // the annotations of ingress-nginx, without their prefix
  std::vector<IngressRule> rules{};
  std::vector<IngressTls> tls{};
  ServiceRef fallback{};  // spec.defaultBackend; its name is empty if the Ingress has no defaultBackend

  [[nodiscard]] std::string full_name() const { return space + "/" + name; }
};

// Returns the Ingresses in the documents. A document may also be a list of objects. Adds a note for each
// object that is no Ingress, or that has another API version.
[[nodiscard]] std::vector<Ingress> read_ingresses(const std::vector<YamlNode>& documents,
                                                  const std::string& file, Notes& notes);

}  // namespace weir::cli::nginx
