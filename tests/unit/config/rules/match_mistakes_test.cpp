// Tests the exact messages about mistakes in conditions.
#include "unit/config/wrong_configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

const WrongConfiguration kWrongConditions[] = {
    {"MatchPathRelative",
     with_rule("match = { path = \"api\" }\n"),
     {"weir.toml:14: rule[x].match.path: found \"api\"; expected \"/login\", \"/api/*\" or \"~regex\""}},
    {"MatchPathWithQuery",
     with_rule("match = { path = \"/a?b=1\" }\n"),
     {"weir.toml:14: rule[x].match.path: found \"/a?b=1\"; expected a path without a query; match.query "
      "tests the query"}},
    {"MatchMethodsLower",
     with_rule("match = { methods = [\"get\"] }\n"),
     {"weir.toml:14: rule[x].match.methods: found \"get\", but methods are case-sensitive; did you mean "
      "\"GET\"?"}},
    {"MatchMethodsThatWeirRejects",
     with_rule("match = { methods = [\"CONNECT\", \"Purge\"] }\n"),
     {"weir.toml:14: rule[x].match.methods: found \"CONNECT\", which weir always refuses with 405; expected "
      "methods such as \"GET\"",
      "weir.toml:14: rule[x].match.methods: found \"Purge\", but methods are case-sensitive; did you mean "
      "\"PURGE\"?"}},
    {"MatchMethodsNoToken",
     with_rule("match = { methods = \"A B\" }\n"),
     {"weir.toml:14: rule[x].match.methods: found \"A B\"; expected a method such as \"GET\""}},
    {"MatchMethodsEmpty",
     with_rule("match = { methods = [] }\n"),
     {"weir.toml:14: rule[x].match.methods: found none; expected methods such as \"GET\""}},
    {"MatchHostThatIsNoRegularExpression",
     with_rule("match = { host = \"~example(\" }\n"),
     {"weir.toml:14: rule[x].match.host: found \"~example(\"; \"~example(\" is not a regular expression: "
      "missing ): example("}},
    {"MatchHostWithAWildcardAtItsEnd",
     with_rule("match = { host = [\"example.com\", \"www.*\"] }\n"),
     {"weir.toml:14: rule[x].match.host: found \"www.*\"; expected a name without port, such as "
      "\"api.example.com\", \"*.example.com\" or \"~regex\""}},
    {"MatchHostEmpty",
     with_rule("match = { host = [] }\n"),
     {"weir.toml:14: rule[x].match.host: found none; expected hosts such as \"api.example.com\""}},
    {"MatchSchemeUnknown",
     with_rule("match = { scheme = \"htps\" }\n"),
     {"weir.toml:14: rule[x].match.scheme: found \"htps\"; did you mean \"https\"?"}},
    {"MatchListenerWithoutNamedListeners",
     with_rule("match = { listener = \"edge\" }\n"),
     {"weir.toml:14: rule[x].match.listener: found \"edge\", but no [[listener]] has this name; expected "
      "name "
      "= \"edge\" in a [[listener]]"}},
    {"MatchListenerUnknown",
     with_rule("match = { listener = [\"egde\"] }\n[[listener]]\naddress = \"127.0.0.1:1\"\nname = "
               "\"edge\"\n"),
     {"weir.toml:14: rule[x].match.listener: found \"egde\", but no [[listener]] has this name; did you mean "
      "\"edge\"?"}},
    {"MatchRouteUnknown",
     with_rule("match = { route = \"api\" }\n"),
     {"weir.toml:14: rule[x].match.route: found \"api\", but no [[route]] has this name; expected \"*\""}},
    {"MatchRouteOfARoute",
     with("[[route]]\nupstream = \"api\"\nmatch = { route = \"*\" }\n"),
     {"weir.toml:13: route[#2].match.route: found in a [[route]], which weir chooses by its other "
      "conditions; "
      "expected it in a [[rule]]"}},
    {"ListenerNamesTwice",
     with("[[listener]]\naddress = \"127.0.0.1:1\"\nname = \"edge\"\n[[listener]]\naddress = "
          "\"127.0.0.1:2\"\nname = \"edge\"\n"),
     {"weir.toml:16: listener[edge].name: found \"edge\" a second time; expected a unique name"}},
    {"MatchHostWithAnInvalidCharacter",
     with_rule("match = { host = \"a|b\" }\n"),
     {"weir.toml:14: rule[x].match.host: found \"a|b\"; expected a name without port, such as "
      "\"api.example.com\", \"*.example.com\" or \"~regex\""}},
    {"MatchHostThatIsNoIpv4Address",
     with_rule("match = { host = \"256.1.1.1\" }\n"),
     {"weir.toml:14: rule[x].match.host: found \"256.1.1.1\"; expected an IPv4 address of four numbers from "
      "0 to 255, or a name: no name ends in a number"}},
    {"MatchMappedIpv4Block",
     with_rule("match = { ip = [\"::ffff:0:0/90\", \"::ffff:10.0.0.1/104\", \"::ffff:10.0.0.0/104\"] }\n"),
     {"weir.toml:14: rule[x].match.ip: found \"::ffff:0:0/90\", but weir compares IPv4-mapped addresses as "
      "IPv4; expected a prefix of 96 or more, or an IPv4 block such as \"10.0.0.0/8\"",
      "weir.toml:14: rule[x].match.ip: found \"::ffff:10.0.0.1/104\"; expected an address, or a block such "
      "as \"10.0.0.0/8\" without bits past its prefix"}},
    {"MatchHostWithPort",
     with_rule("match = { host = \"api.example.com:8443\" }\n"),
     {"weir.toml:14: rule[x].match.host: found \"api.example.com:8443\"; expected a name without port, such "
      "as \"api.example.com\", \"*.example.com\" or \"~regex\""}},
    {"MatchHeaderOfANumber",
     with_rule("match = { headers = { X-Tenant = 5 } }\n"),
     {"weir.toml:14: rule[x].match.headers.X-Tenant: found a whole number; expected \"text\", \"~regex\" or "
      "true for present"}},
    {"MatchHeaderFalse",
     with_rule("match = { headers = { X-Tenant = false } }\n"),
     {"weir.toml:14: rule[x].match.headers.X-Tenant: found false; expected \"text\", \"~regex\" or true for "
      "present"}},
    {"MatchHeaderName",
     with_rule("match = { headers = { \"X Tenant\" = \"a\" } }\n"),
     {"weir.toml:14: rule[x].match.headers.X Tenant: found an invalid name; expected a name such as "
      "\"X-Tenant\""}},
    {"MatchIp",
     with_rule("match = { ip = \"10.0.0.1/8\" }\n"),
     {"weir.toml:14: rule[x].match.ip: found \"10.0.0.1/8\"; expected an address, or a block such as "
      "\"10.0.0.0/8\" without bits past its prefix"}},
    {"MatchHours",
     with_rule("match = { hours = \"1:00-6:00\" }\n"),
     {"weir.toml:14: rule[x].match.hours: \"1:00-6:00\" is not a time range; write HH:MM-HH:MM from 00:00 to "
      "24:00, such as \"22:00-06:00\""}},
    {"MatchHoursEmpty",
     with_rule("match = { hours = \"06:00-06:00\" }\n"),
     {"weir.toml:14: rule[x].match.hours: \"06:00-06:00\" ends when it begins; write \"00:00-24:00\" for the "
      "whole day"}},
    {"MatchDays",
     with_rule("match = { days = [\"monday\"] }\n"),
     {"weir.toml:14: rule[x].match.days: \"monday\" is not a day; write mon, tue, wed, thu, fri, sat or "
      "sun"}},
    {"MatchDaysNone",
     with_rule("match = { days = [] }\n"),
     {"weir.toml:14: rule[x].match.days: found none; expected days such as \"mon\""}},
    {"MatchTimezone",
     with_rule("match = { days = \"mon\", timezone = \"Europe/Bern\" }\n"),
     {"weir.toml:14: rule[x].match.timezone: \"Europe/Bern\" is not a time zone of this system; write one "
      "such as \"Europe/Zurich\""}},
    {"MatchTimezoneAlone",
     with_rule("match = { timezone = \"Europe/Zurich\" }\n"),
     {"weir.toml:14: rule[x].match.hours: missing; expected hours such as \"22:00-06:00\", or days, because "
      "timezone is given"}},
    {"MatchCountryWithoutADatabase",
     with_rule("match = { country = [\"CH\"] }\n"),
     {"weir.toml:14: rule[x].match.country: found without a file of countries; expected [client] geo = "
      "\"GeoLite2-Country.mmdb\""}},
    {"MatchCountryByName",
     with_rule("match = { country = \"Chile\" }\n[client]\ngeo = \"/nowhere/c.mmdb\"\n"),
     {"weir.toml:14: rule[x].match.country: found \"Chile\"; expected two capital letters such as \"CH\" "
      "(ISO "
      "3166-1)",
      "weir.toml:16: client.geo: \"/nowhere/c.mmdb\" cannot be read: No such file or directory; expected a "
      "database in MaxMind's format"}},
    {"MatchPlacesWithoutADatabase",
     with_rule("match = { city = \"Geneva\", region = \"CH-GE\", asn = \"AS3303\" }\n"),
     {"weir.toml:14: rule[x].match.city: found without a file of cities; expected [client] geo = "
      "\"GeoLite2-City.mmdb\"",
      "weir.toml:14: rule[x].match.region: found without a file of cities; expected [client] geo = "
      "\"GeoLite2-City.mmdb\"",
      "weir.toml:14: rule[x].match.asn: found without a file of autonomous systems; expected [client] geo = "
      "\"GeoLite2-ASN.mmdb\""}},
    {"MatchPlacesInOtherForms",
     with_rule("match = { city = \"\", region = \"GE\", asn = [\"3303\", \"AS07\"] }\n[client]\ngeo = []\n"),
     {"weir.toml:14: rule[x].match.city: found \"\"; expected a text such as \"Geneva\"",
      "weir.toml:14: rule[x].match.region: found \"GE\"; expected a text such as \"CH-GE\" (ISO 3166-2)",
      "weir.toml:14: rule[x].match.asn: found \"3303\"; expected a text such as \"AS3303\"",
      "weir.toml:14: rule[x].match.asn: found \"AS07\"; expected a text such as \"AS3303\"",
      "weir.toml:16: client.geo: found none; expected files such as \"GeoLite2-Country.mmdb\""}},
    {"MatchJsonNothing",
     with_rule("match = { json = {} }\n"),
     {"weir.toml:14: rule[x].match.json: found none; expected conditions such as { \"/model\" = \"~^gpt-4\" "
      "}"}},
    {"MatchJsonWithoutAPointer",
     with_rule("match = { json = { model = \"a\" } }\n"),
     {"weir.toml:14: rule[x].match.json.model: found no JSON pointer (RFC 6901); expected a name such as "
      "\"/model\""}},
    {"MatchJsonANumber",
     with_rule("match = { json = { \"/n\" = 5 } }\n"),
     {"weir.toml:14: rule[x].match.json./n: found a whole number; expected \"text\", \"~regex\" or true for "
      "present"}},
    {"MatchNotEmpty",
     with_rule("match = { not = {} }\n"),
     {"weir.toml:14: rule[x].match.not: found no condition, so no request would match; expected at least "
      "one"}},
    {"MatchUnknown",
     with_rule("match = { paths = \"/a\" }\n"),
     {"weir.toml:14: rule[x].match.paths: unknown key; did you mean \"path\"?"}},
    {"MatchBodyContainsNothing",
     with_rule("match = { body_contains = [] }\n"),
     {"weir.toml:14: rule[x].match.body_contains: found none; expected texts such as \"wire transfer\""}},
    {"MatchBodyContainsAnything",
     with_rule("match = { body_contains = [\"a\", \"\"] }\n"),
     {"weir.toml:14: rule[x].match.body_contains: found \"\", which every body contains; expected a text"}},
    {"MatchBodyContainsANumber",
     with_rule("match = { body_contains = 5 }\n"),
     {"weir.toml:14: rule[x].match.body_contains: found a whole number; expected a string or a list of "
      "strings: write body_contains = \"5\""}},
    {"MatchBodyContainsMoreThanIsRead",
     with_rule("match = { body_contains = \"abcd\", max_body = 3 }\n"),
     {"weir.toml:14: rule[x].match.body_contains: found \"abcd\", which is longer than max_body"}},
    {"MatchMaxBodyAlone",
     with_rule("match = { max_body = 3 }\n"),
     {"weir.toml:14: rule[x].match.body_contains: missing; expected the texts that weir looks for in bodies "
      "of up to max_body"}},
    {"MatchMaxBodyOfNothing",
     with_rule("match = { not = { body_contains = \"abcd\", max_body = 0 } }\n"),
     {"weir.toml:14: rule[x].match.not.max_body: found 0 bytes; expected 1 byte to 16MiB, because weir holds "
      "such bodies in memory"}},
};

class MatchMistakes : public ::testing::TestWithParam<WrongConfiguration> {};

TEST_P(MatchMistakes, ErrorNamesTheLineTheKeyAndTheExpectedValue) {
  EXPECT_THAT(mistakes_in(GetParam().text), ::testing::ElementsAreArray(GetParam().mistakes));
}

INSTANTIATE_TEST_SUITE_P(InvalidConfigurations, MatchMistakes, ::testing::ValuesIn(kWrongConditions),
                         [](const auto& wrong) { return wrong.param.name; });

}  // namespace
}  // namespace weir::config::test
