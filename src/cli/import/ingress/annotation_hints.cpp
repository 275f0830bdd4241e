#include "cli/import/ingress/annotation_hints.hpp"

#include <algorithm>
#include <array>

namespace weir::cli::nginx {

namespace {

constexpr auto kNeedlessAnnotations =
    std::to_array<std::string_view>({"proxy-buffering",
                                     "proxy-request-buffering",
                                     "proxy-buffer-size",
                                     "proxy-buffers-number",
                                     "proxy-busy-buffers-size",
                                     "proxy-max-temp-file-size",
                                     "proxy-http-version",
                                     "client-body-buffer-size",
                                     "service-upstream",
                                     "enable-access-log",
                                     "enable-rewrite-log",
                                     "http2-push-preload",
                                     "ssl-prefer-server-ciphers",
                                     "preserve-trailing-slash",
                                     "proxy-ssl-server-name",
                                     "auth-realm",
                                     "auth-secret",
                                     "auth-secret-type",
                                     "auth-method",
                                     "auth-signin",
                                     "auth-signin-redirect-param",
                                     "auth-response-headers",
                                     "auth-request-redirect",
                                     "auth-cache-key",
                                     "auth-cache-duration",
                                     "auth-proxy-set-headers",
                                     "auth-snippet",
                                     "auth-keepalive",
                                     "auth-always-set-cookie",
                                     "auth-tls-verify-depth",
                                     "auth-tls-verify-client",
                                     "auth-tls-error-page",
                                     "auth-tls-pass-certificate-to-upstream",
                                     "auth-tls-match-cn",
                                     "modsecurity-snippet",
                                     "modsecurity-transaction-id",
                                     "canary-by-header",
                                     "canary-by-header-value",
                                     "canary-by-header-pattern",
                                     "canary-by-cookie",
                                     "canary-weight",
                                     "canary-weight-total",
                                     "satisfy"});

struct AnnotationHint {
  std::string_view name, text;
};

constexpr auto kAnnotationHints = std::to_array<AnnotationHint>(
    {{"limit-rate", "not imported; weir: bandwidth = \"…\" on a rule"},
     {"limit-rate-after", "no equal; weir: bandwidth = \"…\" on a rule holds from the first byte"},
     {"global-rate-limit", "not imported; weir: a [[rule]] with store = \"redis\""},
     {"global-rate-limit-window", "not imported; weir: limit of a [[rule]]"},
     {"global-rate-limit-key", "not imported; weir: key of a [[rule]]"},
     {"global-rate-limit-ignored-cidrs",
      "not imported; weir: match = { not = { ip = [\"…\"] } } of a [[rule]]"},
     {"proxy-send-timeout", "no equal; weir: timeouts.response holds for the whole answer"},
     {"proxy-next-upstream-timeout", "not imported; weir: timeouts.total of the upstream"},
     {"proxy-redirect-from", "no equal; weir forwards Location of the servers as it is"},
     {"proxy-redirect-to", "no equal; weir forwards Location of the servers as it is"},
     {"upstream-vhost", "not imported; weir: host of the upstream"},
     {"upstream-hash-by", "not imported; weir: balance = \"hash\" and hash_key of the upstream"},
     {"load-balance", "not imported; weir: balance of the upstream"},
     {"affinity", "not imported; weir: balance = \"hash\" and hash_key = [\"cookie:…\"] of the upstream"},
     {"x-forwarded-prefix", "not imported; weir: headers = { request = { set = … } } of the [[route]]"},
     {"from-to-www-redirect",
      "not imported; weir: a [[route]] with respond = { status = 308, location = \"…\" }"},
     {"default-backend", "no equal; weir answers 502 or 503 if no server answers"},
     {"custom-http-errors", "no equal; weir forwards the answers of servers"},
     {"custom-headers", "not imported; weir: headers = { response = { set = … } } of the [[route]]"},
     {"connection-proxy-header", "no equal"},
     {"mirror-target", "no equal"},
     {"ssl-ciphers", "no equal; weir uses OpenSSL's choice for min_version"},
     {"proxy-ssl-verify-depth", "no equal; weir accepts a chain of any usual length"},
     {"proxy-cookie-domain", "no equal"},
     {"proxy-cookie-path", "no equal"},
     {"stream-snippet", "no equal; weir proxies HTTP only"},
     {"enable-global-auth",
      "no equal. If the controller's global-auth-url is set, every Ingress asks for credentials: weir does "
      "not"}});

}  // namespace

std::string_view hint_of_annotation(std::string_view name) {
  if (name.starts_with("session-cookie-") || name.starts_with("affinity-") || name.starts_with("mirror-r") ||
      std::find(kNeedlessAnnotations.begin(), kNeedlessAnnotations.end(), name) != kNeedlessAnnotations.end())
    return {};
  const auto* const hint = std::find_if(kAnnotationHints.begin(), kAnnotationHints.end(),
                                        [&](const AnnotationHint& known) { return known.name == name; });
  return hint != kAnnotationHints.end() ? hint->text
                                        : std::string_view("no equal, or no annotation of ingress-nginx");
}

}  // namespace weir::cli::nginx
