#include "cli/import/ingress/ingress_settings.hpp"

#include "cli/import/ingress/annotation_hints.hpp"
#include "cli/import/read/zone_key.hpp"
#include "cli/import/syntax/nginx_parser.hpp"
#include "cli/import/syntax/nginx_values.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace weir::cli::nginx {

namespace {

constexpr std::uint64_t kMostRate = 1'000'000;
constexpr std::uint64_t kUsualMultiplier = 5;
constexpr const char* kClosed = "; weir answers 403, so that nobody passes who must not";

std::vector<std::string> words_of(std::string_view text, char between) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const auto end = std::min(text.find(between), text.size());
    auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    word.remove_prefix(std::min(word.find_first_not_of(" \t\r\n"), word.size()));
    word = word.substr(0, word.find_last_not_of(" \t\r\n") + 1);
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// Returns true for the texts that ingress-nginx accepts as true.
bool is_true(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue{"1", "t", "T", "true", "TRUE", "True"};
  return std::find(kTrue.begin(), kTrue.end(), text) != kTrue.end();
}

class AnnotationReader {
 public:
  AnnotationReader(const Ingress& ingress, ImportState& state) : ingress_(ingress), state_(state) {}

  IngressSettings read() {
    settings_.scope.passes_host = true;
    settings_.scope.tuning.connect = std::chrono::seconds(5);  // the default of ingress-nginx
    read_limits();
    read_addresses();
    read_closing();
    read_snippet("configuration-snippet");
    read_snippet("server-snippet");
    read_body_size();
    read_upstream_settings();
    read_redirects();
    read_paths();
    read_cors();
    for (const auto& [name, annotation] : ingress_.annotations)
      if (!used_.contains(name)) note_untranslated(name, annotation);
    return std::move(settings_);
  }

 private:
  // Returns the annotation with this name, and marks it as translated. Returns null if the Ingress has no
  // such annotation.
  const Annotation* take(const std::string& name) {
    const auto found = ingress_.annotations.find(name);
    if (found == ingress_.annotations.end()) return nullptr;
    used_.insert(name);
    return &found->second;
  }
  std::string value(const std::string& name) {
    const auto* annotation = take(name);
    return annotation != nullptr ? annotation->value : std::string();
  }
  void note(const std::string& name, const Annotation& annotation, const std::string& what) {
    state_.notes.add(annotation.position, name, what);
  }
  void close(const std::string& name, const Annotation& annotation, const std::string& what) {
    settings_.scope.guards.insert(name);
    note(name, annotation, what + kClosed);
  }
  void note_untranslated(const std::string& name, const Annotation& annotation) {
    const auto hint = hint_of_annotation(name);
    if (!hint.empty()) note(name, annotation, std::string(hint));
  }

  // Returns the annotation's number; 0 if the Ingress has no such annotation. If the text is no number up to
  // kMostRate, a limit would be missing. So this function closes the Ingress: weir answers 403 to its
  // requests.
  std::uint64_t number(const std::string& name) {
    const auto* annotation = take(name);
    if (annotation == nullptr) return 0;
    const auto parsed = parse_number(annotation->value);
    if (!parsed || *parsed > kMostRate)
      close(name, *annotation, "found \"" + annotation->value + "\", which is no number up to 1000000");
    return parsed && *parsed <= kMostRate ? *parsed : 0;
  }

  void read_limits() {
    const auto* multiplier = take("limit-burst-multiplier");
    const auto bursts = multiplier != nullptr ? number("limit-burst-multiplier") : kUsualMultiplier;
    except_ = blocks_of("limit-whitelist");
    for (auto& block : blocks_of("limit-allowlist")) except_.push_back(std::move(block));
    add_rate("limit-rps", "r/s", bursts);
    add_rate("limit-rpm", "r/m", bursts);
    const auto most = number("limit-connections");
    if (most == 0) return;
    const auto zone = add_zone("limit-connections", {"$binary_remote_addr"}, state_.result.connection_zones);
    settings_.scope.connections.push_back({.position = position_of("limit-connections"),
                                           .connections = true,
                                           .zone = zone,
                                           .number = most,
                                           .over = Over::Refuse});
  }

  void add_rate(const std::string& name, const char* unit, std::uint64_t bursts) {
    const auto rate = number(name);
    if (rate == 0) return;
    const auto zone = add_zone(name, {"$binary_remote_addr", "rate=" + std::to_string(rate) + unit},
                               state_.result.request_zones);
    settings_.scope.requests.push_back({.position = position_of(name),
                                        .zone = zone,
                                        .number = std::min(rate * bursts, kMostRate),
                                        .over = Over::Refuse});
  }

  // Adds a zone that counts the requests of the whole Ingress. Returns the zone's name.
  std::string add_zone(const std::string& name, std::vector<std::string> words,
                       std::map<std::string, Zone>& zones) {
    const auto zone_name = ingress_.full_name() + " " + name;
    words.push_back("zone=" + zone_name);
    Zone zone;
    (void)read_zone({.position = position_of(name), .name = name, .arguments = std::move(words)}, zone,
                    state_.notes);
    zone.except = except_;
    zones.emplace(zone_name, std::move(zone));
    return zone_name;
  }

  [[nodiscard]] Position position_of(const std::string& name) const {
    return ingress_.annotations.at(name).position;
  }

  // Returns the addresses and address blocks in a list. If an element is neither, closes the Ingress: weir
  // answers 403 to its requests.
  std::vector<std::string> blocks_of(const std::string& name) {
    std::vector<std::string> blocks;
    const auto* annotation = take(name);
    if (annotation == nullptr) return blocks;
    for (const auto& word : words_of(annotation->value, ',')) {
      auto block = block_of_addresses(word);
      if (block.empty())
        close(name, *annotation, "found \"" + word + "\", which is no address and no block");
      else
        blocks.push_back(std::move(block));
    }
    return blocks;
  }

  void read_addresses() {
    auto& access = settings_.scope.access;
    for (auto& block : blocks_of("denylist-source-range")) access.push_back({false, std::move(block)});
    std::vector<std::string> allowed = blocks_of("whitelist-source-range");
    for (auto& block : blocks_of("allowlist-source-range")) allowed.push_back(std::move(block));
    if (allowed.empty()) return;
    for (auto& block : allowed) access.push_back({true, std::move(block)});
    access.push_back({false, {}});
  }

  // Reads annotations by which ingress-nginx demands credentials, or refuses requests in other ways that weir
  // cannot imitate. Closes the Ingress (weir answers 403 to its requests), or leaves it out.
  void read_closing() {
    for (const char* name : {"auth-url", "auth-type", "auth-tls-secret"})
      if (const auto* annotation = take(name); annotation != nullptr && !annotation->value.empty())
        close(name, *annotation,
              std::string("no equal") + (name == std::string_view("auth-tls-secret")
                                             ? " for one host; weir: client_ca of the listener"
                                             : ""));
    for (const char* name : {"enable-modsecurity", "enable-owasp-core-rules"})
      if (const auto* annotation = take(name); annotation != nullptr && is_true(annotation->value))
        close(name, *annotation, "no equal");
    if (const auto* annotation = take("canary"); annotation != nullptr && is_true(annotation->value)) {
      settings_.left_out = true;
      note("canary", *annotation, "no equal; the Ingress is left out, and its share goes to the main one");
    }
    if (const auto* annotation = take("ssl-passthrough");
        annotation != nullptr && is_true(annotation->value)) {
      settings_.left_out = true;
      note("ssl-passthrough", *annotation, "no equal; weir ends TLS itself, so the Ingress is left out");
    }
  }

  // Reads nginx directives in an annotation. Closes the Ingress (weir answers 403 to its requests) if one of
  // the directives does more than change how nginx forwards, or if the text cannot be parsed.
  void read_snippet(const std::string& name) {
    const auto* annotation = take(name);
    if (annotation == nullptr) return;
    const auto directives = parse_nginx(annotation->value, name);
    if (!directives) return close(name, *annotation, "not read: " + directives.error().message);
    constexpr std::array<std::string_view, 12> kHarmless{"proxy_",  "more_",      "add_header", "gzip",
                                                         "client_", "sub_filter", "expires",    "etag",
                                                         "grpc_",   "brotli",     "keepalive_", "access_log"};
    for (const auto& directive : *directives) {
      const bool harmless = std::any_of(kHarmless.begin(), kHarmless.end(), [&](std::string_view beginning) {
        return directive.name.starts_with(beginning);
      });
      if (harmless)
        note(name, *annotation,
             directive.name + ": not imported; weir: headers of the [[route]], or keys of the [[upstream]]");
      else
        close(name, *annotation, directive.name + ": no equal");
    }
  }

  void read_body_size() {
    const auto* annotation = take("proxy-body-size");
    if (annotation == nullptr) return;
    const auto size = parse_size(annotation->value);
    if (!size)
      return note("proxy-body-size", *annotation,
                  "found \"" + annotation->value + "\", which is no size; weir takes 1MiB");
    settings_.scope.max_body = *size == 0 ? std::nullopt : size;
  }

  void read_upstream_settings() {
    ScopeReader scope(settings_.scope, state_);
    for (const auto& [name, directive] :
         {std::pair("proxy-connect-timeout", "proxy_connect_timeout"),
          std::pair("proxy-read-timeout", "proxy_read_timeout"),
          std::pair("proxy-next-upstream", "proxy_next_upstream"),
          std::pair("proxy-next-upstream-tries", "proxy_next_upstream_tries"),
          std::pair("proxy-ssl-verify", "proxy_ssl_verify"), std::pair("proxy-ssl-name", "proxy_ssl_name")})
      if (const auto* annotation = take(name))
        (void)scope.read({.position = annotation->position,
                          .name = directive,
                          .arguments = words_of(annotation->value, ' ')});
    if (const auto* annotation = take("proxy-ssl-secret")) {
      auto file = annotation->value;
      std::replace(file.begin(), file.end(), '/', '-');
      settings_.scope.tuning.ca = "/etc/weir/tls/" + file + "/ca.crt";
      note("proxy-ssl-secret", *annotation,
           "mount the Secret at /etc/weir/tls/" + file + "; its tls.crt and tls.key are not imported");
    }
    const auto* protocol = take("backend-protocol");
    if (protocol == nullptr) return;
    auto text = protocol->value;
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 0x20) : c;
    if (text == "auto_http") text = "http";
    constexpr std::array<std::string_view, 4> kKnown{"http", "https", "grpc", "grpcs"};
    settings_.scheme = std::find(kKnown.begin(), kKnown.end(), text) != kKnown.end() ? text : std::string();
    if (settings_.scheme.empty())
      note("backend-protocol", *protocol, protocol->value + ": no equal; weir answers 502");
  }

  void read_redirects() {
    if (const auto* annotation = take("ssl-redirect")) settings_.to_https = is_true(annotation->value);
    if (const auto* annotation = take("force-ssl-redirect"))
      settings_.always_to_https = is_true(annotation->value);
    const auto code = value("permanent-redirect-code");
    for (const auto& [name, status] :
         {std::pair("temporal-redirect", std::string("302")),
          std::pair("permanent-redirect", code.empty() ? std::string("301") : code)}) {
      const auto* annotation = take(name);
      if (annotation == nullptr || annotation->value.empty() || !settings_.redirect.empty()) continue;
      settings_.redirect = {status, annotation->value};
      settings_.redirect_position = annotation->position;
    }
  }

  void read_paths() {
    settings_.regex = is_true(value("use-regex"));
    settings_.rewrite = value("rewrite-target");
    settings_.app_root = value("app-root");
    settings_.aliases = words_of(value("server-alias"), ',');
  }

  // Returns the annotation's list of names; `usual` if the Ingress has no such annotation. If the list
  // contains characters that no name has, adds a note and returns an empty text.
  std::string names_in(const std::string& name, const char* usual) {
    const auto* annotation = take(name);
    if (annotation == nullptr || annotation->value.empty()) return usual;
    const auto is_sign = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
             std::string_view("-_*, ").find(c) != std::string_view::npos;
    };
    if (std::all_of(annotation->value.begin(), annotation->value.end(), is_sign)) return annotation->value;
    note(name, *annotation, "found \"" + annotation->value + "\", which is no list of names");
    return {};
  }

  // Translates CORS: ingress-nginx adds the fields to all answers, and answers preflights (OPTIONS) itself.
  void read_cors() {
    const auto* annotation = take("enable-cors");
    const auto origins = value("cors-allow-origin");
    const auto credentials = value("cors-allow-credentials");
    const auto age = parse_number(value("cors-max-age")).value_or(1'728'000);
    const auto methods = names_in("cors-allow-methods", "GET, PUT, POST, DELETE, PATCH, OPTIONS");
    const auto headers =
        names_in("cors-allow-headers",
                 "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,"
                 "Content-Type,Range,Authorization");
    const auto shown = names_in("cors-expose-headers", "");
    if (annotation == nullptr || !is_true(annotation->value)) return;
    const auto origin = origins.empty() ? std::string("*") : origins;
    if (origin != "*" && origin.find_first_of(",*{} ") != std::string::npos)
      return note(
          "enable-cors", *annotation,
          "no equal for several origins or an origin with *; weir: [cors] origins, if the servers permit "
          "them, too");
    auto& fields = settings_.scope.response.set;
    fields.emplace_back("Access-Control-Allow-Origin", origin);
    if (origin != "*" && (credentials.empty() || is_true(credentials)))
      fields.emplace_back("Access-Control-Allow-Credentials", "true");
    settings_.preflight = fields;
    if (!shown.empty()) fields.emplace_back("Access-Control-Expose-Headers", shown);
    if (!methods.empty()) settings_.preflight.emplace_back("Access-Control-Allow-Methods", methods);
    if (!headers.empty()) settings_.preflight.emplace_back("Access-Control-Allow-Headers", headers);
    settings_.preflight.emplace_back("Access-Control-Max-Age", std::to_string(age));
  }

  const Ingress& ingress_;
  ImportState& state_;
  IngressSettings settings_;
  std::set<std::string> used_;
  std::vector<std::string> except_;  // clients that are exempt from the limits
};

}  // namespace

IngressSettings read_annotations(const Ingress& ingress, ImportState& state) {
  return AnnotationReader(ingress, state).read();
}

}  // namespace weir::cli::nginx
