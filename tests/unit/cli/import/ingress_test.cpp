// Tests the translation of Ingresses with annotations of ingress-nginx.
#include "unit/cli/import/translation.hpp"

namespace weir::cli::nginx {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Translated translated(const std::string& text) {
  Notes notes;
  const auto toml = translate_ingresses(text, "i.yaml", notes);
  Translated result{toml ? *toml : "fault: " + toml.error().message, {}};
  for (const auto& note : notes.sorted()) result.notes.push_back(note.line());
  return result;
}

struct Sample {
  std::string annotations{};  // lines "name: value", separated by line breaks
  std::string paths = "{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}";
  std::string host = "shop.example.com";
  std::string tls{};
  std::string name = "shop";
};

std::string yaml_of(const Sample& sample) {
  std::string text = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: " + sample.name +
                     "\n  namespace: store\n  annotations:\n    other.example/x: y\n";
  auto rest = sample.annotations;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    text += "    nginx.ingress.kubernetes.io/" + rest.substr(0, end) + "\n";
    rest.erase(0, end + 1);
  }
  text += "spec:\n  ingressClassName: nginx\n  rules:\n  - host: " + sample.host + "\n    http: {paths: [" +
          sample.paths + "]}\n";
  return text + (sample.tls.empty() ? "" : "  tls: [" + sample.tls + "]\n");
}

// Translates one Ingress, and checks that weir accepts the result.
Translated import_of(const Sample& sample) {
  auto result = translated(yaml_of(sample));
  EXPECT_THAT(mistakes_of(result.toml), IsEmpty()) << result.toml;
  return result;
}

Translated import_annotations(const std::string& annotations) {
  return import_of({.annotations = annotations});
}

bool has_upstream(const Translated& result) {
  return result.toml.find("\nupstream = ") != std::string::npos;
}

std::string ingress_path(const std::string& text, const std::string& type) {
  return "{path: '" + text + "', pathType: " + type +
         ", backend: {service: {name: web, port: {number: 80}}}}";
}

TEST(Ingress, HostAndPathBecomeARouteToTheService) {
  const auto result = import_of({});
  EXPECT_THAT(result.toml, AllOf(HasSubstr("servers = [\"web.store.svc:80\"]"),
                                 HasSubstr("host = \"shop.example.com\""), HasSubstr("connect = \"5s\""),
                                 HasSubstr("response = \"1min\""), HasSubstr("max_body = \"1MiB\"")));
  EXPECT_THAT(result.toml, HasSubstr("respond = { status = 404 }")) << "for all other hosts";
  EXPECT_THAT(result.notes, IsEmpty());
}

TEST(Ingress, PathTypesMatchAsInKubernetes) {
  const auto prefix = import_of({.paths = ingress_path("/api", "Prefix")}).toml;
  EXPECT_THAT(prefix, AllOf(HasSubstr("path = \"/api\" }"), HasSubstr("path = \"/api/*\" }")));
  EXPECT_THAT(import_of({.paths = ingress_path("/api", "Exact")}).toml,
              AllOf(HasSubstr("path = \"/api\" }"), Not(HasSubstr("/api/*"))));
  EXPECT_THAT(import_of({.paths = ingress_path("/api", "ImplementationSpecific")}).toml,
              HasSubstr("path = \"/api*\" }"));
}

TEST(Ingress, WildcardHostMatchesExactlyOneLabel) {
  EXPECT_THAT(import_of({.host = "'*.example.com'"}).toml,
              HasSubstr("host = \"~^[^.]+\\\\.example\\\\.com$\""));
}

TEST(Ingress, LimitAnnotationsBecomeRulesKeyedByAddress) {
  const auto result = import_annotations(
      "limit-rps: '10'\nlimit-rpm: '60'\nlimit-connections: '3'\nlimit-burst-multiplier: '2'");
  EXPECT_THAT(
      result.toml,
      HasSubstr("key = [\"ip\"]\nalgorithm = \"gcra\"\nlimit = \"10/s\"\nburst = 20\nstatus = 503\n"));
  EXPECT_THAT(result.toml, HasSubstr("limit = \"60/min\"\nburst = 120\n"));
  EXPECT_THAT(result.toml, HasSubstr("algorithm = \"concurrency\"\nlimit = 3\n"));
  EXPECT_THAT(result.toml, HasSubstr("ipv6_prefix = 128"));
  EXPECT_THAT(import_annotations("limit-rps: '10'").toml, HasSubstr("burst = 50"))
      << "the usual multiplier is 5";
  for (const char* name : {"limit-whitelist", "limit-allowlist"})
    EXPECT_THAT(import_annotations("limit-rps: '10'\n" + std::string(name) + ": 10.0.0.0/8, 192.0.2.1").toml,
                HasSubstr("not = { ip = [\"10.0.0.0/8\", \"192.0.2.1\"] }"));
}

TEST(Ingress, AllPathsOfAnIngressShareTheLimitOfTheIngress) {
  const auto result = import_of({.annotations = "limit-rps: '10'",
                                 .paths = ingress_path("/a", "Exact") + ", " + ingress_path("/b", "Exact")});
  EXPECT_EQ(result.toml.find("[[rule]]"), result.toml.rfind("[[rule]]"));
  EXPECT_THAT(result.toml,
              HasSubstr("match = { route = [\"shop.example.com = /b\", \"shop.example.com = /a\"] }"));
}

TEST(Ingress, SourceRangesBecomeRoutesThatAnswer403ToOtherAddresses) {
  const auto result =
      import_annotations("whitelist-source-range: 10.0.0.0/8\ndenylist-source-range: 10.1.0.0/16");
  const auto deny = result.toml.find("ip = \"10.1.0.0/16\"");
  const auto allow = result.toml.find("ip = \"10.0.0.0/8\"");
  ASSERT_NE(deny, std::string::npos) << result.toml;
  EXPECT_LT(deny, allow);
  EXPECT_LT(result.toml.find("respond = { status = 403 }", deny), allow);
  EXPECT_NE(result.toml.find("respond = { status = 403 }", allow), std::string::npos)
      << "for all other addresses";
}

TEST(Ingress, HostWithATlsSecretRedirectsHttpToHttps) {
  const std::string tls = "{hosts: [shop.example.com], secretName: shop-tls}";
  const auto toml = [&](const std::string& annotations) {
    return translated(yaml_of({.annotations = annotations, .tls = tls})).toml;
  };
  EXPECT_THAT(toml(""), AllOf(HasSubstr("status = 308, location = \"https://{host}{uri}\""),
                              HasSubstr("cert = \"/etc/weir/tls/store-shop-tls/tls.crt\""),
                              HasSubstr("address = \"0.0.0.0:443\"")));
  EXPECT_THAT(toml("ssl-redirect: 'false'"), Not(HasSubstr("308")));
  EXPECT_THAT(import_annotations("force-ssl-redirect: 'true'").toml, HasSubstr("status = 308"));
  EXPECT_FALSE(has_upstream(import_annotations("force-ssl-redirect: 'true'")));
  EXPECT_THAT(
      translated(yaml_of({.host = "a.example.com", .tls = "{hosts: ['*.example.com'], secretName: s}"})).toml,
      HasSubstr("status = 308"));
  EXPECT_THAT(
      translated(yaml_of({.paths = ingress_path("/.well-known/acme-challenge/x", "Exact"), .tls = tls})).toml,
      Not(HasSubstr("308")));
}

TEST(Ingress, RewriteTargetBecomesARewriteOfThePath) {
  const auto result = import_of({.annotations = "rewrite-target: /$2",
                                 .paths = ingress_path("/api(/|$)(.*)", "ImplementationSpecific")});
  EXPECT_THAT(result.toml, HasSubstr("path = \"~(?i)^/api(/|(?:%0A)?$)(.*)\""));
  EXPECT_THAT(result.toml, HasSubstr("rewrite = { pattern = \"(?i)/api(/|(?:%0A)?$)(.*)\", to = \"/{2}\" }"));
  for (const char* target : {"/$host", "/a?b=$1", "https://x.example/$1", "/{a}"}) {
    const auto other = import_of({.annotations = "rewrite-target: " + std::string(target),
                                  .paths = ingress_path("/api/(.*)", "ImplementationSpecific")});
    EXPECT_FALSE(has_upstream(other)) << target << ": a server might answer what nobody should reach";
    EXPECT_THAT(other.notes, Contains(HasSubstr("rewrite-target: "))) << target;
  }
}

TEST(Ingress, RoutesWithRegularExpressionsHaveTheOrderOfIngressNginx) {
  const auto toml = import_of({.annotations = "use-regex: 'true'",
                               .paths = ingress_path("/a/b", "Exact") + ", " +
                                        ingress_path("/a/[b-z]{3}", "ImplementationSpecific")})
                        .toml;
  EXPECT_LT(toml.find("~(?i)^/a/[b-z]{3}"), toml.find("~(?i)^/a/b\""));
}

TEST(Ingress, RedirectAnnotationsBecomeRedirects) {
  EXPECT_THAT(import_annotations("permanent-redirect: https://new.example").toml,
              HasSubstr("status = 301, location = \"https://new.example\""));
  EXPECT_THAT(
      import_annotations("permanent-redirect: https://new.example\npermanent-redirect-code: '308'").toml,
      HasSubstr("status = 308, location = \"https://new.example\""));
  EXPECT_THAT(import_annotations("temporal-redirect: https://new.example$request_uri").toml,
              HasSubstr("status = 302, location = \"https://new.example{uri}\""));
  EXPECT_THAT(import_annotations("app-root: /shop").toml, HasSubstr("location = \"http://{host}/shop\""));
}

TEST(Ingress, ProxyAnnotationsSetTheBodyLimitTheTimeoutsAndTheUpstreamProtocol) {
  EXPECT_THAT(import_annotations("proxy-body-size: 8m").toml, HasSubstr("max_body = \"8MiB\""));
  EXPECT_THAT(import_annotations("proxy-body-size: '0'").toml,
              AllOf(Not(HasSubstr("[server]")), HasSubstr("upstream = \"web.store.svc:80\"\n\n")));
  EXPECT_THAT(import_annotations("proxy-connect-timeout: '2'\nproxy-read-timeout: '120'").toml,
              HasSubstr("timeouts = { connect = \"2s\", response = \"2min\" }"));
  EXPECT_THAT(import_annotations("backend-protocol: HTTPS").toml,
              AllOf(HasSubstr("https://web.store.svc:80"), HasSubstr("verify = false")));
  EXPECT_THAT(import_annotations("backend-protocol: GRPC").toml, HasSubstr("protocol = \"h2c\""));
  EXPECT_FALSE(has_upstream(import_annotations("backend-protocol: FCGI")));
}

TEST(Ingress, CorsAnnotationsBecomeResponseFieldsAndAnAnswerToPreflights) {
  const auto one = import_annotations(
                       "enable-cors: 'true'\ncors-allow-origin: https://app.example\ncors-max-age: '600'\n"
                       "cors-allow-methods: GET, PUT\ncors-expose-headers: X-A")
                       .toml;
  EXPECT_THAT(one,
              HasSubstr("headers.response = { set = { Access-Control-Allow-Origin = \"https://app.example\", "
                        "Access-Control-Allow-Credentials = \"true\", "
                        "Access-Control-Expose-Headers = \"X-A\" } }"));
  EXPECT_THAT(one, HasSubstr("methods = [\"OPTIONS\"] }\nrespond = { status = 204, headers = { "
                             "Access-Control-Allow-Origin = \"https://app.example\""));
  EXPECT_THAT(one, AllOf(HasSubstr("Access-Control-Allow-Methods = \"GET, PUT\""),
                         HasSubstr("Access-Control-Max-Age = \"600\"")));
  EXPECT_LT(one.find("OPTIONS"), one.find("upstream = "));
  EXPECT_THAT(import_annotations("enable-cors: 'true'").toml,
              AllOf(HasSubstr("Access-Control-Allow-Origin = \"*\""), Not(HasSubstr("Credentials"))));
  EXPECT_THAT(import_annotations("enable-cors: 'false'\ncors-allow-origin: https://a.example").toml,
              Not(HasSubstr("Access-Control")));
  for (const char* origins : {"https://a.example, https://b.example", "https://*.example"}) {
    const auto several =
        import_annotations("enable-cors: 'true'\ncors-allow-origin: '" + std::string(origins) + "'");
    EXPECT_THAT(several.toml, Not(HasSubstr("Access-Control"))) << origins;
    EXPECT_THAT(several.notes, Contains(HasSubstr("enable-cors: no equal for several origins"))) << origins;
  }
}

// weir must not admit a request that ingress-nginx would refuse.
TEST(Ingress, IngressForwardsNoRequestIfWeirCannotEnforceAnAnnotation) {
  for (const char* annotation :
       {"auth-url: https://auth.example", "auth-type: basic", "auth-tls-secret: store/ca",
        "enable-modsecurity: 'true'", "configuration-snippet: 'deny all;'",
        "configuration-snippet: 'if ($x) { return 403; }'", "server-snippet: 'access_by_lua_block { x() }'",
        "configuration-snippet: 'a {'", "limit-rps: ten", "limit-connections: '-1'",
        "limit-burst-multiplier: x", "whitelist-source-range: office", "denylist-source-range: 10.0.0.0/8, x",
        "limit-whitelist: x"}) {
    const auto result = import_annotations(annotation);
    EXPECT_FALSE(has_upstream(result)) << annotation;
    EXPECT_THAT(result.toml, HasSubstr("respond = { status = 403 }")) << annotation;
    EXPECT_THAT(result.notes, Contains(HasSubstr("weir answers 403"))) << annotation;
  }
  for (const char* annotation : {"auth-type: ''", "enable-modsecurity: 'false'", "auth-realm: x",
                                 "configuration-snippet: 'more_set_headers \"A: b\";'"})
    EXPECT_TRUE(has_upstream(import_annotations(annotation))) << annotation;
}

TEST(Ingress, CanaryAndSslPassthroughIngressesAreLeftOut) {
  for (const char* annotation : {"canary: 'true'", "ssl-passthrough: 'true'"}) {
    const auto result = import_annotations(annotation);
    EXPECT_FALSE(has_upstream(result)) << annotation;
    EXPECT_THAT(result.notes, Contains(HasSubstr("the Ingress is left out"))) << annotation;
  }
}

TEST(Ingress, ReportListsEachUntranslatedAnnotationWithItsLine) {
  const auto result = import_annotations("proxy-buffering: 'on'\nlimit-rate: '5'\nnonsense: x");
  EXPECT_THAT(result.notes,
              testing::ElementsAre("i.yaml:9: limit-rate: not imported; weir: bandwidth = \"…\" on a rule",
                                   "i.yaml:10: nonsense: no equal, or no annotation of ingress-nginx"));
}

TEST(Ingress, IngressWhoseServiceHasNoPortNumberAnswers502) {
  const auto result = import_of(
      {.paths = "{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}"});
  EXPECT_FALSE(has_upstream(result));
  EXPECT_THAT(result.notes,
              Contains(HasSubstr("backend: found no service with a port number; weir answers 502")));
}

TEST(Ingress, OlderIngressWinsIfTwoHaveTheSamePath) {
  auto older = yaml_of({.name = "old"});
  older.insert(older.find("  namespace"), "  creationTimestamp: '2020-01-01T00:00:00Z'\n");
  auto newer = yaml_of({.annotations = "auth-type: basic"});
  newer.insert(newer.find("  namespace"), "  creationTimestamp: '2021-01-01T00:00:00Z'\n");
  const auto result = translated(newer + "---\n" + older);
  EXPECT_TRUE(has_upstream(result));
  EXPECT_THAT(result.notes, Contains(HasSubstr("is never used: the Ingress store/old has it")));
}

TEST(Ingress, ListsOfIngressesAreReadAndOtherObjectsAreReported) {
  auto item = yaml_of({});
  for (auto at = item.find('\n'); at != std::string::npos && at + 1 < item.size();
       at = item.find('\n', at + 3))
    item.insert(at + 1, "  ");
  const auto result = translated("kind: List\nitems:\n- " + item +
                                 "---\nkind: Service\n---\nkind: Ingress\napiVersion: extensions/v1beta1\n");
  EXPECT_TRUE(has_upstream(result)) << result.toml;
  EXPECT_THAT(result.notes, AllOf(Contains(HasSubstr("Service: not read")),
                                  Contains(HasSubstr("apiVersion extensions/v1beta1: left out"))));
}

TEST(Ingress, IngressesOfSeveralClassesAreRejected) {
  auto other = yaml_of({.name = "b"});
  other.replace(other.find("ingressClassName: nginx"), 23, "ingressClassName: inner");
  EXPECT_THAT(translated(yaml_of({}) + "---\n" + other).toml,
              HasSubstr("fault: the Ingresses have several classes (inner, nginx)"));
  EXPECT_EQ(translated("kind: Service\n").toml, "fault: there is no Ingress; weir import needs one");
  EXPECT_THAT(translated("a: *x\n").toml, HasSubstr("fault: i.yaml:1: "));
}

}  // namespace
}  // namespace weir::cli::nginx
