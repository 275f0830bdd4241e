// Listeners that answer questions, and the conditions and keys of rules for questions.
#include "config/warn/overlap.hpp"
#include "unit/config/configuration.hpp"
#include "unit/config/warnings.hpp"
#include "unit/net/tls.hpp"

#include "weir/config/differences.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using net::Serves;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns a configuration whose only listener answers questions. The text `more` begins on line 3.
std::string asked(const std::string& more) {
  return "[[listener]]\naddress = \"127.0.0.1:8081\"\n" + more;
}

// Returns a configuration with a second listener on line 11, at an address that other machines can reach.
// The text `more` begins on line 13.
std::string reachable(const std::string& more) {
  return with("[[listener]]\naddress = \"10.0.0.1:8081\"\n" + more);
}

TEST(AskListener, HasDefaults) {
  const auto decide = parse(asked("serves = \"decide\"\n")).listeners.at(0);
  EXPECT_EQ(decide.serves, Serves::Decide);
  EXPECT_EQ(decide.ask, net::AskOptions{});
  EXPECT_TRUE(decide.protocols.http1);
  EXPECT_FALSE(decide.protocols.h2c);
  const auto rls = parse(asked("serves = \"rls\"\n")).listeners.at(0);
  EXPECT_EQ(rls.serves, Serves::Rls);
  EXPECT_TRUE(rls.ask.together);
  EXPECT_EQ(rls.protocols, (net::Protocols{.http1 = false, .h2 = false, .h2c = true}));
  EXPECT_EQ(parse(kLeast).listeners.at(0).serves, Serves::Proxy);
}

TEST(AskListener, ReadsItsSettings) {
  const auto decide =
      parse(asked("serves = \"decide\"\ntoken = \"t\"\npermit_ttl = \"5s\"\nmax_permits = 7\n")).listeners[0];
  EXPECT_EQ(decide.ask.token, "t");
  EXPECT_EQ(decide.ask.permit_ttl, std::chrono::seconds(5));
  EXPECT_EQ(decide.ask.max_permits, 7U);
  EXPECT_FALSE(parse(asked("serves = \"rls\"\ndescriptors = \"each\"\n")).listeners[0].ask.together);
}

TEST(AskListener, RlsListenerWithTlsOffersOnlyHttp2) {
  const Folder folder;
  const net::Certificates made;
  folder.write("a.crt", contents(made.cert()));
  folder.write("a.key", contents(made.key()));
  const auto settings = parse_settings(
      asked("serves = \"rls\"\ntls = { certificates = [{ cert = \"a.crt\", key = \"a.key\" }] }\n"),
      folder.file(kFile));
  const net::Protocols h2{.http1 = false, .h2 = true, .h2c = false};
  EXPECT_EQ(settings.listeners[0].protocols, h2);
  EXPECT_EQ(settings.listeners[0].tls->protocols, h2);
}

TEST(AskListener, NeedsNoRouteAndNoUpstream) {
  const auto settings = parse(asked("serves = \"decide\"\n[[rule]]\nname = \"r\"\nlimit = \"1/s\"\n"));
  EXPECT_THAT(settings.routes, IsEmpty());
  EXPECT_THAT(mistakes_in(asked("serves = \"decide\"\n[[listener]]\naddress = \"127.0.0.1:1\"\n")),
              ElementsAre("weir.toml:1: route: missing; expected at least one [[route]]"));
}

TEST(AskListener, ListenerThatOtherMachinesCanReachNeedsATokenOrClientCertificates) {
  EXPECT_THAT(
      mistakes_in(reachable("serves = \"decide\"\n")),
      ElementsAre("weir.toml:11: listener[#2].token: missing; expected a token, because 10.0.0.1:8081 can be "
                  "reached from other machines: set token = \"${WEIR_ASK_TOKEN}\", or demand certificates "
                  "with tls = { client_ca = \"ca.crt\" }, or listen on address = \"127.0.0.1:8081\" or "
                  "\"unix:/path\""));
  EXPECT_THAT(
      mistakes_in(reachable("serves = \"rls\"\ntoken = \"short\"\n")),
      ElementsAre(AllOf(HasSubstr("listener[#2].token: found 5 characters"), Not(HasSubstr("short")))));
  EXPECT_THAT(mistakes_in(reachable("serves = \"rls\"\ntoken = \"${WEIR_NO_SUCH_TOKEN:-}\"\n")),
              ElementsAre(HasSubstr("listener[#2].token: missing; expected a token")));
  EXPECT_THAT(mistakes_in(reachable("serves = \"rls\"\ntoken = \"0123456789abcdef\"\n")), IsEmpty());
  EXPECT_THAT(mistakes_in(reachable("serves = \"rls\"\ntoken = \"0123456789 abcdef\"\n")),
              ElementsAre(HasSubstr("found blanks")));
  EXPECT_THAT(mistakes_in(with("[[listener]]\naddress = \"unix:/run/ask\"\nserves = \"rls\"\n")), IsEmpty());
}

TEST(AskListener, ListenerThatDemandsClientCertificatesNeedsNoToken) {
  const Folder folder;
  const net::Certificates made;
  folder.write("a.crt", contents(made.cert()));
  folder.write("a.key", contents(made.key()));
  const auto tls = [](const std::string& more) {
    return reachable("serves = \"rls\"\ntls = { certificates = [{ cert = \"a.crt\", key = \"a.key\" }]" +
                     more + " }\n");
  };
  EXPECT_THAT(mistakes_in(tls(", client_ca = \"a.crt\""), folder.file(kFile)), IsEmpty());
  EXPECT_THAT(mistakes_in(tls(", client_ca = \"a.crt\", client_auth = \"optional\""), folder.file(kFile)),
              ElementsAre(HasSubstr("token: missing")));
  EXPECT_THAT(mistakes_in(tls(""), folder.file(kFile)), ElementsAre(HasSubstr("token: missing")));
}

TEST(AskListener, RejectsSettingsOfOtherKindsOfListeners) {
  EXPECT_THAT(mistakes_in(reachable("token = \"0123456789abcdef\"\n")),
              ElementsAre("weir.toml:13: listener[#2].token: only a listener with serves = \"decide\" or "
                          "serves = \"rls\" uses this; expected serves = \"decide\" or serves = \"rls\" "
                          "beside it, or remove this key"));
  EXPECT_THAT(mistakes_in(asked("serves = \"decide\"\ndescriptors = \"each\"\n")),
              ElementsAre(HasSubstr("4: listener[#1].descriptors: only a listener with serves = \"rls\"")));
  EXPECT_THAT(
      mistakes_in(asked("serves = \"rls\"\npermit_ttl = \"5s\"\nmax_permits = 7\n")),
      ElementsAre(HasSubstr("4: listener[#1].permit_ttl: only a listener with serves = \"decide\""),
                  HasSubstr("5: listener[#1].max_permits: only a listener with serves = \"decide\"")));
  EXPECT_THAT(
      mistakes_in(asked("serves = \"rls\"\npermit_ttl = \"60s\"\nmax_permits = 10000\n")),
      ElementsAre(HasSubstr("permit_ttl: only a listener"), HasSubstr("max_permits: only a listener")))
      << "the defaults";
  EXPECT_THAT(mistakes_in(asked("serves = \"decide\"\ndescriptors = \"together\"\n")),
              ElementsAre(HasSubstr("descriptors: only a listener with serves = \"rls\"")))
      << "the default";
  EXPECT_THAT(mistakes_in(asked("serves = \"rls\"\nprotocols = [\"http/1.1\"]\n")),
              ElementsAre("weir.toml:4: listener[#1].protocols: found \"http/1.1\" with serves = \"rls\", "
                          "but gRPC needs HTTP/2; expected [\"h2c\"], or remove this key"));
  EXPECT_THAT(mistakes_in(asked("serves = \"decide\"\npermit_ttl = \"0s\"\n")),
              ElementsAre(HasSubstr("permit_ttl: found \"0s\"; expected a duration above zero")));
  EXPECT_THAT(mistakes_in(asked("serves = \"decide\"\npermit_ttl = \"2h\"\n")),
              ElementsAre(HasSubstr("permit_ttl: found \"2h\"; expected at most \"1h\", because")));
  EXPECT_THAT(mistakes_in(asked("serves = \"decide\"\npermit_ttl = \"1h\"\n")), IsEmpty());
  EXPECT_THAT(mistakes_in(asked("serves = \"dcide\"\n")),
              ElementsAre(HasSubstr("serves: found \"dcide\"; did you mean \"decide\"?")));
  EXPECT_THAT(mistakes_in(asked("serve = \"decide\"\ntoken = \"t\"\n")),
              ElementsAre(HasSubstr("serve: unknown key; did you mean \"serves\"?")));
}

TEST(AskListener, WarnsIfItsPermitsNeedMuchMemory) {
  const auto of = [](const char* most) {
    return warnings_of(asked("serves = \"decide\"\nmax_permits = " + std::string(most) + "\n"));
  };
  EXPECT_THAT(of("30000"),
              Contains(HasSubstr("may keep 30000 permits (max_permits), which need some 1171 MiB")));
  EXPECT_THAT(of("20000"), Not(Contains(HasSubstr("max_permits"))));
}

TEST(AskListener, DescriptionOmitsTheToken) {
  const auto shown = [](const std::string& more) { return describe(parse(asked(more))); };
  EXPECT_THAT(
      shown("serves = \"decide\"\ntoken = \"s3cret\"\n"),
      AllOf(HasSubstr("listener 127.0.0.1:8081 plain, answers questions in JSON with a token, permits "
                      "for 1min, at most 10000\n"),
            Not(HasSubstr("s3cret"))));
  EXPECT_THAT(
      shown("serves = \"rls\"\ndescriptors = \"each\"\n"),
      HasSubstr("HTTP/2 by prior knowledge only, answers Envoy's rate limit calls, descriptors each by "
                "itself\n"));
  const auto settings = [](const std::string& token) {
    return parse(asked("serves = \"decide\"\ntoken = \"" + token + "\"\n"));
  };
  EXPECT_THAT(unshown_differences(settings("a"), settings("b")),
              ElementsAre("now: listener 127.0.0.1:8081 has another token"));
  EXPECT_THAT(unshown_differences(settings("a"), settings("a")), IsEmpty());
}

const std::string kQuestionRules =
    "[[rule]]\nname = \"by-user\"\nkey = [\"descriptor:user\", \"domain\"]\nlimit = \"1/s\"\n"
    "match = { domains = [\"edge\"], descriptor = { plan = \"*\", region = true, path = \"~^/a\", kind = "
    "\"k\" "
    "} }\n";

TEST(QuestionRules, ReadConditionsAndKeys) {
  const auto settings = parse(asked("serves = \"decide\"\n" + kQuestionRules));
  const auto& rule = settings.rules.at(0);
  EXPECT_EQ(rule.match.domains, std::vector<std::string>{"edge"});
  EXPECT_EQ(rule.match.describe(),
            "domain edge, descriptor kind = k, descriptor path = ~^/a, descriptor plan present, "
            "descriptor region present");
  EXPECT_EQ(policy::describe(rule.key), "[descriptor:user, domain]");
  EXPECT_THAT(rule.descriptor_keys, ElementsAre("kind", "path", "plan", "region", "user"));
  EXPECT_THAT(settings.warnings, IsEmpty());
}

TEST(QuestionRules, AreShownBelowTheRoutes) {
  const auto text = describe(
      parse(with("[[listener]]\naddress = \"127.0.0.1:2\"\nserves = \"decide\"\n" + kQuestionRules)));
  const auto at = text.find("\nquestions\n");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_THAT(text.substr(0, at), AllOf(HasSubstr("rule \"all\""), Not(HasSubstr("by-user"))));
  EXPECT_THAT(text.substr(at), AllOf(HasSubstr("rule \"all\""), HasSubstr("rule \"by-user\"")));
}

TEST(QuestionRules, CauseAWarningIfNoListenerAnswersQuestions) {
  EXPECT_THAT(warnings_of(with(kQuestionRules)),
              Contains("rule \"by-user\" needs a domain, which only a question has, but no listener answers "
                       "questions; write serves = \"decide\" or \"rls\" in a [[listener]]"));
  EXPECT_THAT(warnings_of(with("[[rule]]\nname = \"r\"\nlimit = \"1/s\"\nkey = [\"descriptor:user\"]\n")),
              Contains(HasSubstr("rule \"r\" needs a descriptor, which only a question has")));
}

TEST(QuestionRules, WarningNamesBandwidthIfAllListenersAnswerQuestions) {
  const std::string paced = "[[rule]]\nname = \"b\"\nbandwidth = \"1MiB/s\"\nkey = [\"ip\"]\n";
  EXPECT_THAT(warnings_of(asked("serves = \"decide\"\n" + paced)),
              ElementsAre("rule \"b\" has bandwidth, which has no effect: no listener forwards requests, and "
                          "questions have no bodies and no messages"));
  EXPECT_THAT(warnings_of(with("[[listener]]\naddress = \"127.0.0.1:2\"\nserves = \"decide\"\n" + paced)),
              Not(Contains(HasSubstr("has bandwidth"))));
}

TEST(QuestionRules, CauseAWarningIfTheyNeedTheEndOfARequestWhichEnvoyDoesNotReport) {
  const std::string rls = "serves = \"rls\"\n", decide = "serves = \"decide\"\n";
  const std::string held =
      "[[rule]]\nname = \"h\"\nalgorithm = \"concurrency\"\nlimit = 5\nkey = [\"descriptor:user\"]\n";
  EXPECT_THAT(
      warnings_of(asked(rls + held)),
      Contains("rule \"h\" is a concurrency limit that counts only calls to which weir replies at that "
               "moment, because Envoy does not say how a request ended; forward requests by weir, or "
               "ask at a [[listener]] with serves = \"decide\""));
  const std::string corrected =
      "[[rule]]\nname = \"c\"\nlimit = \"5/min\"\nkey = [\"ip\"]\nmatch = { domains = "
      "[\"edge\"] }\ncharge = { status = [\"401\"] }\n";
  EXPECT_THAT(
      warnings_of(asked(rls + corrected)),
      Contains(HasSubstr("rule \"c\" never corrects its charge by the answer, so it keeps its reserve "
                         "of 1, because Envoy")));
  const auto other = HasSubstr("Envoy does not say");
  EXPECT_THAT(warnings_of(asked(decide + held + corrected)), Not(Contains(other)));
  EXPECT_THAT(
      warnings_of(asked(rls + "[[listener]]\naddress = \"127.0.0.1:7\"\n" + decide + held + corrected)),
      Not(Contains(other)));
  const auto of_requests = "[[rule]]\nname = \"p\"\nalgorithm = \"concurrency\"\nlimit = 5\nkey = [\"ip\"]\n";
  EXPECT_THAT(warnings_of(asked(rls + of_requests)), Not(Contains(other)))
      << "a rule that requests can meet, too";
}

TEST(QuestionRules, RejectDomainsInARouteAndEmptyListsOfDomains) {
  EXPECT_THAT(
      mistakes_in(with("[[route]]\nname = \"r\"\nupstream = \"api\"\nmatch = { domains = [\"a\"] }\n")),
      ElementsAre(AllOf(HasSubstr("domains: found in a [[route]]"), HasSubstr("expected it in a [[rule]]"))));
  EXPECT_THAT(mistakes_in(with_rule("match = { domains = [] }\n")),
              ElementsAre(HasSubstr("domains: found none; expected domains")));
}

TEST(QuestionRules, RejectMessagesAndBandwidthInARuleThatNeedsADescriptor) {
  EXPECT_THAT(mistakes_in(with_rule("key = [\"descriptor:user\"]\nmessages = \"1/s\"\n")),
              ElementsAre(HasSubstr("messages: found in a rule that needs a descriptor")));
  EXPECT_THAT(mistakes_in(with("[[rule]]\nname = \"x\"\nbandwidth = \"1MiB/s\"\nkey = [\"ip\"]\nmatch = { "
                               "descriptor = { a = \"b\" } }\n")),
              ElementsAre(HasSubstr("bandwidth: found in a rule that needs a descriptor")));
}

TEST(QuestionRules, RejectDescriptorsWithoutANameOrAValue) {
  for (const char* match : {"{ descriptor = { a = \"\" } }", "{ not = { descriptor = { a = \"\" } } }"})
    EXPECT_THAT(mistakes_in(with_rule("match = " + std::string(match) + "\n")),
                ElementsAre(HasSubstr("descriptor: found no value for \"a\", but an empty value counts as "
                                      "missing")))
        << match;
  EXPECT_THAT(mistakes_in(with_rule("key = [\"descriptor\"]\n")),
              ElementsAre(HasSubstr("\"descriptor\" needs a name, as \"descriptor:NAME\"")));
  EXPECT_THAT(mistakes_in(with_rule("match = { descriptor = { a = 1 } }\n")),
              ElementsAre(HasSubstr("descriptor.a: found a whole number; expected \"text\"")));
}

TEST(QuestionRules, OverdraftIsReadAndShown) {
  const std::string tokens = "key = [\"descriptor:user\"]\noverdraft = true\n";
  const auto settings =
      parse_settings(asked("serves = \"rls\"\n[[rule]]\nname = \"a\"\nlimit = \"9/h\"\n" + tokens), kFile);
  EXPECT_TRUE(settings.rules[0].overdraft);
  EXPECT_THAT(describe(settings), HasSubstr(", charged beyond the limit"));
  EXPECT_FALSE(parse_settings(with_rule("key = [\"descriptor:user\"]\noverdraft = false\n"), kFile)
                   .rules[0]
                   .overdraft);
}

TEST(QuestionRules, RejectOverdraftBesideSettingsThatCannotBeCombinedWithIt) {
  const std::string by_user = "key = [\"descriptor:user\"]\noverdraft = true\n";
  const auto mistake = [&](const std::string& limit, const std::string& more = "") {
    return mistakes_in(with("[[rule]]\nname = \"x\"\n" + limit + by_user + more));
  };
  const std::string hourly = "limit = \"9/h\"\n";
  EXPECT_THAT(mistakes_in(with_rule("key = [\"ip\"]\noverdraft = true\n")),
              ElementsAre(AllOf(HasSubstr("overdraft: found in a rule that needs no descriptor"),
                                HasSubstr("expected a descriptor of questions, such as key"))));
  EXPECT_THAT(mistake("limit = 9\nalgorithm = \"concurrency\"\n"),
              ElementsAre(HasSubstr("overdraft: found beside an algorithm that counts requests in flight")));
  EXPECT_THAT(mistake(hourly + "algorithm = \"leaky_bucket\"\n"),
              ElementsAre(HasSubstr("overdraft: found beside leaky_bucket")));
  EXPECT_THAT(
      mistake(hourly, "charge = { status = \"401\" }\n"),
      ElementsAre(HasSubstr("overdraft: found beside a cost or charge that depends on the response")));
  EXPECT_THAT(mistake(hourly, "elastic = { limit = \"99/h\", while_load_below = 0.5 }\n"),
              ElementsAre(HasSubstr("overdraft: found beside elastic")));
  EXPECT_THAT(mistake(hourly, "penalty = { for = \"1h\" }\n"),
              ElementsAre(HasSubstr("overdraft: found beside penalty")));
  EXPECT_THAT(mistake("limit = \"900/h\"\n",
                      "store = \"redis\"\nlease = \"10%\"\n[state]\nredis = { url = \"redis://a\" }\n"),
              ElementsAre(HasSubstr("overdraft: found beside lease")));
}

TEST(QuestionRules, ComparisonOfRulesIncludesDomainsAndDescriptors) {
  const auto rules = parse(asked("serves = \"decide\"\n[[rule]]\nname = \"a\"\nlimit = \"1/s\"\nmatch = { "
                                 "domains = [\"a\"] }\n[[rule]]\nname = \"b\"\nlimit = \"1/s\"\nmatch = { "
                                 "domains = [\"a\"], descriptor = { k = \"v\" } }\n[[rule]]\nname = "
                                 "\"c\"\nlimit = \"1/s\"\nmatch = { domains = [\"c\"] }\n"))
                         .rules;
  EXPECT_TRUE(plainly_covers(rules[0].match, rules[1].match));
  EXPECT_FALSE(plainly_covers(rules[1].match, rules[0].match));
  EXPECT_FALSE(plainly_covers(rules[0].match, rules[2].match));
  EXPECT_TRUE(plainly_disjoint(rules[0].match, rules[2].match));
}

}  // namespace
}  // namespace weir::config::test
