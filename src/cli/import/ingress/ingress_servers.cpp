#include "cli/import/ingress/ingress_servers.hpp"

#include "cli/import/ingress/host_servers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace weir::cli::nginx {

namespace {

// Returns true if `pattern` equals `name`, or equals it with "*" in place of the first label.
bool covers_host(const std::string& pattern, const std::string& name) {
  if (pattern == name || !pattern.starts_with("*.")) return pattern == name;
  const auto dot = name.find('.');
  return dot != std::string::npos && dot != 0 && name.substr(dot) == pattern.substr(1);
}

class IngressImporter {
 public:
  explicit IngressImporter(Notes& notes) : notes_(notes) {}

  Configuration import(const std::vector<Ingress>& ingresses) {
    ImportState state{result_, notes_, {}};
    std::vector<ImportedIngress> imported;
    imported.reserve(ingresses.size());
    for (const auto& ingress : ingresses) imported.push_back({&ingress, read_annotations(ingress, state)});
    for (const auto& one : imported)
      if (!one.settings.left_out) add_rules(one);
    for (const auto& one : imported)
      if (!one.settings.left_out) add_tls(one);
    if (!ingresses.empty() && !hosts_.contains("")) hosts_[""].position = ingresses.front().position;
    for (auto& [name, host] : hosts_) {
      finish(host);
      add_servers(name, host, any_tls_, result_, notes_);
    }
    return std::move(result_);
  }

 private:
  IngressHost& host_named(const std::string& name, const Position& position) {
    auto& host = hosts_[name];
    if (host.position.file == nullptr) host.position = position;
    return host;
  }

  void add_rules(const ImportedIngress& one) {
    const auto& ingress = *one.ingress;
    for (const auto& rule : ingress.rules) {
      auto& host = host_named(rule.host, rule.position);
      for (const auto& path : rule.paths) add_path(path, one, host);
      if (!ingress.fallback.name.empty())
        add_path({rule.position, "/", "ImplementationSpecific", ingress.fallback}, one, host, false);
      if (host.app_root.empty()) host.app_root = one.settings.app_root;
      const auto& aliases = one.settings.aliases;
      host.aliases.insert(host.aliases.end(), aliases.begin(), aliases.end());
    }
    if (ingress.rules.empty() && !ingress.fallback.name.empty())
      add_path({ingress.position, "/", "ImplementationSpecific", ingress.fallback}, one,
               host_named("", ingress.position));
  }

  void add_path(const IngressPath& path, const ImportedIngress& one, IngressHost& host, bool tells = true) {
    const auto same = std::find_if(host.paths.begin(), host.paths.end(), [&](const HostPath& other) {
      return other.path.path == path.path && (other.path.type == path.type || !tells);
    });
    if (same == host.paths.end()) {
      host.paths.push_back({path, &one});
    } else if (tells) {
      notes_.add(path.position, "path",
                 path.path + ": is never used: the Ingress " + same->owner->ingress->full_name() + " has it");
    }
  }

  void add_tls(const ImportedIngress& one) {
    for (const auto& tls : one.ingress->tls) {
      any_tls_ = true;
      std::set<std::string> names(tls.hosts.begin(), tls.hosts.end());
      for (const auto& rule : one.ingress->rules)
        if (tls.hosts.empty() ||
            std::any_of(tls.hosts.begin(), tls.hosts.end(),
                        [&](const std::string& host) { return covers_host(host, rule.host); }))
          names.insert(rule.host);
      const auto folder = "/etc/weir/tls/" + one.ingress->space + "-" + tls.secret;
      if (tls.secret.empty())
        notes_.add(tls.position, "tls",
                   "no equal for the controller's own certificate; weir: certificates of the [[listener]]");
      else
        notes_.add(tls.position, "tls",
                   "mount the Secret " + one.ingress->space + "/" + tls.secret + " at " + folder);
      for (const auto& name : names) {
        auto& certificate = host_named(name, tls.position).certificate;
        if (certificate) continue;
        certificate.emplace();
        if (!tls.secret.empty()) *certificate = {folder + "/tls.crt", folder + "/tls.key", {}};
      }
    }
  }

  // Orders the paths as ingress-nginx does: longer paths first, and paths of equal length in descending
  // alphabetical order.
  static void finish(IngressHost& host) {
    host.regex = std::any_of(host.paths.begin(), host.paths.end(), [](const HostPath& entry) {
      return entry.owner->settings.regex || rewrites(entry);
    });
    std::stable_sort(host.paths.begin(), host.paths.end(), [](const HostPath& a, const HostPath& b) {
      const auto length = [](const HostPath& one) { return one.path.path.size(); };
      return length(a) != length(b) ? length(a) > length(b) : a.path.path > b.path.path;
    });
  }

  Notes& notes_;
  Configuration result_;
  std::map<std::string, IngressHost> hosts_;  // the key is the host; "": all other hosts
  bool any_tls_ = false;
};

}  // namespace

Configuration configuration_of(const std::vector<Ingress>& ingresses, Notes& notes) {
  return IngressImporter(notes).import(ingresses);
}

}  // namespace weir::cli::nginx
