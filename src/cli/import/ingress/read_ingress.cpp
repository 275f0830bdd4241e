#include "cli/import/ingress/ingress.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr std::string_view kPrefix = "nginx.ingress.kubernetes.io/";

class IngressReader {
 public:
  IngressReader(const std::string& file, Notes& notes)
      : file_(std::make_shared<const std::string>(file)), notes_(notes) {}

  std::vector<Ingress> ingresses;

  void read_object(const YamlNode& object) {
    const auto kind = object.text_of("kind");
    if (const auto* items = object.find("items"); items != nullptr && kind.ends_with("List")) {
      for (const auto& item : items->items) read_object(item);
      return;
    }
    if (kind.empty() && object.kind == YamlNode::Kind::Null) return;
    if (kind != "Ingress")
      return notes_.add(position_of(object), std::string(kind.empty() ? "object" : kind),
                        "not read; weir import reads Ingresses alone");
    if (object.text_of("apiVersion") != "networking.k8s.io/v1")
      return notes_.add(
          position_of(object), "Ingress",
          "apiVersion " + std::string(object.text_of("apiVersion")) +
              ": left out; expected networking.k8s.io/v1, as kubectl get ingress -o yaml writes it");
    read_ingress(object);
  }

 private:
  [[nodiscard]] Position position_of(const YamlNode& node) const { return {file_, node.line}; }

  void read_ingress(const YamlNode& object) {
    Ingress ingress{.position = position_of(object), .space = "default"};
    if (const auto* metadata = object.find("metadata")) read_metadata(*metadata, ingress);
    if (const auto* spec = object.find("spec")) read_spec(*spec, ingress);
    ingresses.push_back(std::move(ingress));
  }

  void read_metadata(const YamlNode& metadata, Ingress& ingress) {
    ingress.name = metadata.text_of("name");
    if (const auto space = metadata.text_of("namespace"); !space.empty()) ingress.space = space;
    ingress.created = metadata.text_of("creationTimestamp");
    const auto* annotations = metadata.find("annotations");
    if (annotations == nullptr) return;
    for (std::size_t i = 0; i < annotations->keys.size(); ++i) {
      const std::string_view key = annotations->keys[i];
      const auto& value = annotations->items[i];
      if (key == "kubernetes.io/ingress.class") ingress.class_name = value.text;
      if (key.starts_with(kPrefix))
        ingress.annotations[std::string(key.substr(kPrefix.size()))] = {position_of(value), value.text};
    }
  }

  void read_spec(const YamlNode& spec, Ingress& ingress) {
    if (const auto name = spec.text_of("ingressClassName"); !name.empty()) ingress.class_name = name;
    if (const auto* fallback = spec.find("defaultBackend")) ingress.fallback = service_of(*fallback);
    if (const auto* rules = spec.find("rules"))
      for (const auto& rule : rules->items) read_rule(rule, ingress);
    if (const auto* tls = spec.find("tls"))
      for (const auto& entry : tls->items) read_tls_entry(entry, ingress);
  }

  void read_rule(const YamlNode& node, Ingress& ingress) {
    IngressRule rule{.position = position_of(node), .host = std::string(node.text_of("host")), .paths = {}};
    const auto* http = node.find("http");
    const auto* paths = http != nullptr ? http->find("paths") : nullptr;
    if (paths != nullptr)
      for (const auto& path : paths->items) rule.paths.push_back(path_of(path));
    ingress.rules.push_back(std::move(rule));
  }

  [[nodiscard]] IngressPath path_of(const YamlNode& node) const {
    IngressPath path{.position = position_of(node),
                     .path = std::string(node.text_of("path")),
                     .type = std::string(node.text_of("pathType")),
                     .service = {}};
    if (path.path.empty()) path.path = "/";
    if (const auto* backend = node.find("backend")) path.service = service_of(*backend);
    return path;
  }

  static ServiceRef service_of(const YamlNode& backend) {
    const auto* service = backend.find("service");
    if (service == nullptr) return {};
    const auto* port = service->find("port");
    return {.name = std::string(service->text_of("name")),
            .port = std::string(port != nullptr ? port->text_of("number") : std::string_view{})};
  }

  void read_tls_entry(const YamlNode& node, Ingress& ingress) {
    IngressTls tls{
        .position = position_of(node), .hosts = {}, .secret = std::string(node.text_of("secretName"))};
    if (const auto* hosts = node.find("hosts"))
      for (const auto& host : hosts->items) tls.hosts.push_back(host.text);
    ingress.tls.push_back(std::move(tls));
  }

  std::shared_ptr<const std::string> file_;
  Notes& notes_;
};

}  // namespace

std::vector<Ingress> read_ingresses(const std::vector<YamlNode>& documents, const std::string& file,
                                    Notes& notes) {
  IngressReader reader(file, notes);
  for (const auto& document : documents) reader.read_object(document);
  std::stable_sort(reader.ingresses.begin(), reader.ingresses.end(),
                   [](const Ingress& a, const Ingress& b) { return a.created < b.created; });
  return std::move(reader.ingresses);
}

}  // namespace weir::cli::nginx
