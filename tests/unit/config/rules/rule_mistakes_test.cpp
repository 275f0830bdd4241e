// Tests the exact messages about mistakes in rules.
#include "unit/config/wrong_configuration.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

const WrongConfiguration kWrongRules[] = {
    {"TierOfTwoPriorities",
     with_rule(
         "tiers = { pro = { limit = \"1/s\", priority = 1 } }\n[[rule]]\nname = \"y\"\nlimit = \"1/s\"\n"
         "tiers = { pro = { limit = \"2/s\", priority = 2 } }\n"),
     {"weir.toml:18: rule[y].tiers.pro.priority: found 2, but another rule gives this tier 1; expected one "
      "priority for a tier"}},
    {"QueuePerClientOfABucket",
     with_rule("queue_per_client = 3\n"),
     {"weir.toml:14: rule[x].queue_per_client: only leaky_bucket uses this; expected algorithm = "
      "\"leaky_bucket\""}},
    {"DirectionWithoutMessages",
     with_rule("direction = \"both\"\n"),
     {"weir.toml:14: rule[x].direction: found without messages; expected messages = \"20/s\" beside it"}},
    {"MessagesBurstWithoutMessages",
     with_rule("messages_burst = 3\n"),
     {"weir.toml:14: rule[x].messages_burst: found without messages; expected messages = \"20/s\" beside "
      "it"}},
    {"KeyOfAnInvalidCookieName",
     with_rule("key = [\"cookie:a;b\", \"cookie:a b\", \"cookie:a=b\", \"cookie:a[b]\"]\n"),
     {"weir.toml:14: rule[x].key: \"cookie:a;b\" is not a valid cookie name; write a name without blanks, "
      "'=' and ';'",
      "weir.toml:14: rule[x].key: \"cookie:a b\" is not a valid cookie name; write a name without blanks, "
      "'=' and ';'",
      "weir.toml:14: rule[x].key: \"cookie:a=b\" is not a valid cookie name; write a name without blanks, "
      "'=' and ';'"}},
    {"OverrideWithoutAnyCondition",
     with_rule("overrides = [{ match = {}, limit = \"1/s\" }]\n"),
     {"weir.toml:14: rule[x].overrides[#1].match: found no condition, so the override would replace the "
      "rule's limit, its tiers and all later overrides; expected at least one"}},
    {"StoreFailureWithoutRedis",
     with_rule("on_store_failure = \"closed\"\n"),
     {"weir.toml:14: rule[x].on_store_failure: only a rule kept in Redis uses this; expected store = "
      "\"redis\" beside it"}},
    {"HoldWithoutConcurrency",
     with_rule("hold = \"answer\"\n"),
     {"weir.toml:14: rule[x].hold: only rules that count requests in flight use this; expected algorithm = "
      "\"concurrency\" or \"adaptive_concurrency\""}},
    {"RuleWithoutName",
     with("[[rule]]\nlimit = \"1/s\"\n"),
     {"weir.toml:11: rule[#2].name: missing; expected a string: unique name, shown in headers, "
      "logs and metrics"}},
    {"RuleWithoutLimit",
     with("[[rule]]\nname = \"x\"\n"),
     {"weir.toml:11: rule[x].limit: missing; expected a rate such as \"10/s\""}},
    {"RuleKeyMisspelt",
     with("[[rule]]\nname = \"x\"\nlimt = \"10/s\"\n"),
     {"weir.toml:11: rule[x].limit: missing; expected a rate such as \"10/s\"",
      "weir.toml:13: rule[x].limt: unknown key; did you mean \"limit\"?"}},
    {"RuleTwice",
     with("[[rule]]\nname = \"all\"\nlimit = \"1/s\"\n"),
     {"weir.toml:12: rule[all].name: found \"all\" a second time; expected a unique name"}},
    {"RuleNameWithAQuote",
     with("[[rule]]\nname = \"a\\\"b\"\nlimit = \"1/s\"\n"),
     {"weir.toml:12: rule[a\"b].name: found \"a\"b\"; expected 1 to 128 printable ASCII characters but \" "
      "and \\"}},
    {"RuleNameEmpty",
     with("[[rule]]\nname = \"\"\nlimit = \"1/s\"\n"),
     {"weir.toml:12: rule[#2].name: found \"\"; expected 1 to 128 printable ASCII characters but \" and \\"}},
    {"RuleNameOfUnicode",
     with("[[rule]]\nname = \"ü\"\nlimit = \"1/s\"\n"),
     {"weir.toml:12: rule[ü].name: found \"ü\"; expected 1 to 128 printable ASCII characters but \" and \\"}},
    {"RuleLimitANumber",
     with("[[rule]]\nname = \"x\"\nlimit = 10\n"),
     {"weir.toml:13: rule[x].limit: found a whole number; expected a rate such as \"10/s\": write limit = "
      "\"10/s\""}},
    {"RuleLimitWithoutPeriod",
     with("[[rule]]\nname = \"x\"\nlimit = \"10\"\n"),
     {"weir.toml:13: rule[x].limit: \"10\" is not a rate (no '/'); write COUNT/PERIOD with a period in s, "
      "min, h or day, such as \"10/s\" or \"20/10s\""}},
    {"RuleLimitPerMonth",
     with("[[rule]]\nname = \"x\"\nlimit = \"10/month\"\n"),
     {"weir.toml:13: rule[x].limit: found \"10/month\"; write limit = \"10/30days\", or set algorithm = "
      "\"fixed_window\" and align = \"month\" in the rule"}},
    {"MessagesPerMonth",
     with_rule("messages = \"10/month\"\n"),
     {"weir.toml:14: rule[x].messages: \"10/month\" is not a rate, because months differ in length; write "
      "days, such as \"10/30days\""}},
    {"RuleLimitPerWeekBesideAnAlignThatIsUnused",
     with("[[rule]]\nname = \"x\"\nlimit = \"10/week\"\nalign = \"week\"\n"),
     {"weir.toml:14: rule[x].align: only used by fixed_window; expected algorithm = \"fixed_window\""}},
    {"RuleLimitPerWeekBesideAnUnknownTimezone",
     with("[[rule]]\nname = \"x\"\nlimit = \"10/week\"\nalgorithm = \"fixed_window\"\nalign = \"week\"\n"
          "timezone = \"Berlin\"\n"),
     {"weir.toml:16: rule[x].timezone: found \"Berlin\"; expected a time zone that this system knows, as "
      "\"Europe/Berlin\""}},
    {"RefusalHeadersThatWeirWrites",
     with_rule("headers = { Retry-After = \"1\", x-ratelimit-limit = \"1\", Content-Length = \"1\", "
               "connection = \"close\", Access-Control-Allow-Origin = \"*\", Content-Type = \"a/b\" }\n"),
     {"weir.toml:14: rule[x].headers.Access-Control-Allow-Origin: found \"Access-Control-Allow-Origin\", "
      "which weir writes itself; write a [cors] table instead",
      "weir.toml:14: rule[x].headers.Content-Length: found \"Content-Length\", which frames messages or "
      "belongs to one connection; remove it",
      "weir.toml:14: rule[x].headers.Content-Type: found \"Content-Type\", which has a key of its own; write "
      "content_type = \"…\" beside body instead",
      "weir.toml:14: rule[x].headers.Retry-After: found \"Retry-After\", which weir writes itself; remove it",
      "weir.toml:14: rule[x].headers.connection: found \"connection\", which frames messages or belongs to "
      "one connection; remove it",
      "weir.toml:14: rule[x].headers.x-ratelimit-limit: found \"x-ratelimit-limit\", which weir writes "
      "itself; remove it"}},
    {"RefusalHeadersOfOtherTypes",
     with_rule("headers = { X-A = 1, \"X B\" = \"b\", X-C = \"a\\r\\nb\", X-D = \" d\" }\n"),
     {"weir.toml:14: rule[x].headers.X B: found an invalid name; expected a name such as \"X-Reason\"",
      "weir.toml:14: rule[x].headers.X-A: found a whole number; expected a text",
      "weir.toml:14: rule[x].headers.X-C: found control characters, or blanks at an end; expected the value "
      "of a header field",
      "weir.toml:14: rule[x].headers.X-D: found control characters, or blanks at an end; expected the value "
      "of a header field"}},
    {"RefusalContentTypeWithoutBody",
     with_rule("content_type = \"application/json\"\n"),
     {"weir.toml:11: rule[x].body: missing; expected a text beside content_type, because weir's own text has "
      "a type "
      "of its own"}},
    {"RefusalContentTypeWithALineBreak",
     with_rule("body = \"b\"\ncontent_type = \"a\\r\\nb\"\n"),
     {"weir.toml:15: rule[x].content_type: found \"a\\x0d\\x0ab\"; expected one such as "
      "\"application/json\""}},
    {"JitterOfARuleAbove100",
     with_rule("retry_after_jitter = \"200%\"\n"),
     {"weir.toml:14: rule[x].retry_after_jitter: found \"200%\"; expected a share from \"0%\" to \"100%\""}},
    {"RuleLimitZero",
     with("[[rule]]\nname = \"x\"\nlimit = \"0/s\"\n"),
     {"weir.toml:13: rule[x].limit: \"0/s\" is not a rate (the count must be from 1 to 1000000000); write "
      "COUNT/PERIOD with a period in s, min, h or day, such as \"10/s\" or \"20/10s\""}},
    {"RuleBurstZero",
     with_rule("burst = 0\n"),
     {"weir.toml:14: rule[x].burst: found 0, which admits no request; expected at least 1"}},
    {"RuleBurstNegative",
     with_rule("burst = -1\n"),
     {"weir.toml:14: rule[x].burst: found -1; expected a whole number from 0 to 1000000000"}},
    {"RuleQueueOfATokenBucket",
     with_rule("queue = 3\nmax_wait = \"1s\"\n"),
     {"weir.toml:14: rule[x].queue: only used by leaky_bucket; expected burst, or algorithm = "
      "\"leaky_bucket\"",
      "weir.toml:15: rule[x].max_wait: only used by leaky_bucket; expected algorithm = \"leaky_bucket\""}},
    {"RuleBurstOfALeakyBucket",
     with_rule("algorithm = \"leaky_bucket\"\nburst = 3\n"),
     {"weir.toml:15: rule[x].burst: not used by leaky_bucket; expected queue, or another algorithm"}},
    {"RuleRefillOfGcra",
     with_rule("algorithm = \"gcra\"\nrefill = \"continuous\"\n"),
     {"weir.toml:15: rule[x].refill: only used by token_bucket; expected algorithm = \"token_bucket\""}},
    {"RuleAlgorithmUnknown",
     with_rule("algorithm = \"tokenbucket\"\n"),
     {"weir.toml:14: rule[x].algorithm: found \"tokenbucket\"; did you mean \"token_bucket\"?"}},
    {"RuleKeyAString",
     with_rule("key = \"ip\"\n"),
     {"weir.toml:14: rule[x].key: found a string; expected a list of strings: write key = [\"ip\"]"}},
    {"RuleKeyCountry",
     with_rule("key = [\"ip|country\"]\n"),
     {"weir.toml:14: rule[x].key: found without a file of countries; expected [client] geo = "
      "\"GeoLite2-Country.mmdb\""}},
    {"RuleKeyPlaces",
     with_rule("key = [\"city\", \"region|asn\"]\n"),
     {"weir.toml:14: rule[x].key: found without a file of cities; expected [client] geo = "
      "\"GeoLite2-City.mmdb\"",
      "weir.toml:14: rule[x].key: found without a file of cities; expected [client] geo = "
      "\"GeoLite2-City.mmdb\"",
      "weir.toml:14: rule[x].key: found without a file of autonomous systems; expected [client] geo = "
      "\"GeoLite2-ASN.mmdb\""}},
    {"RuleKeyInTheBody",
     with_rule("key = [\"json:email\", \"form:\", \"path:0\"]\n"),
     {"weir.toml:14: rule[x].key: \"json:email\" has no JSON pointer (RFC 6901); write such as "
      "\"json:/email\" or \"json:/items/0/id\"",
      "weir.toml:14: rule[x].key: \"form:\" needs a name, as \"form:NAME\"",
      "weir.toml:14: rule[x].key: \"path:0\" has no number from 1 to 999; write \"path:1\" for the first "
      "segment, "
      "or "
      "\"path\" for all"}},
    {"RuleKeyOfASegmentTooFar",
     with_rule("key = [\"path:1000\"]\n"),
     {"weir.toml:14: rule[x].key: \"path:1000\" has no number from 1 to 999; write \"path:1\" for the first "
      "segment, or \"path\" for all"}},
    {"RuleMessagesBesideAKeyInTheBody",
     with_rule("key = [\"ip\", \"user|json:/a\"]\nmessages = \"5/s\"\n"),
     {"weir.toml:15: rule[x].messages: found beside a key of json: or form:, but a WebSocket has no body, "
      "and "
      "the body of a gRPC call ends with its messages; expected a key in the head, such as key = "
      "[\"user|ip\"]"}},
    {"RuleMaxBodyWithoutABody",
     with_rule("max_body = \"1KiB\"\n"),
     {"weir.toml:11: rule[x].key: found max_body without json: or form: in the key; expected such a key, or "
      "max_body in the table of match or cost"}},
    {"RuleMaxBodyTooLarge",
     with_rule("key = [\"json:/a\"]\nmax_body = \"17MiB\"\n"),
     {"weir.toml:15: rule[x].max_body: found 17825792 bytes; expected 1 byte to 16MiB, because weir holds "
      "such "
      "bodies in memory"}},
    {"RuleKeyClaim",
     with_rule("key = [\"claim:sub\"]\n"),
     {"weir.toml:14: rule[x].key: found without [client] jwt, which says how weir verifies tokens; expected "
      "[client] jwt = { … }"}},
    {"RuleMatchClaims",
     with_rule("match = { claims = { scope = \"admin\" } }\n"),
     {"weir.toml:14: rule[x].match.claims: found without [client] jwt, which says how weir verifies tokens; "
      "expected [client] jwt = { … }"}},
    {"RuleKeyCertificate",
     with_rule("key = [\"cert:subject\"]\n"),
     {"weir.toml:14: rule[x].key: no listener requests client certificates; expected [[listener]] tls = { "
      "client_ca "
      "= "
      "\"ca.crt\" }"}},
    {"RuleOnMissing",
     with_rule("on_missing = \"skp\"\n"),
     {"weir.toml:14: rule[x].on_missing: found \"skp\"; did you mean \"skip\"?"}},
    {"RuleTierWithoutLimit",
     with_rule("tiers = { free = { burst = 3 } }\n"),
     {"weir.toml:14: rule[x].tiers.free.limit: missing; expected a rate such as \"10/s\""}},
    {"RuleTierANumber",
     with_rule("tiers = { free = 5 }\n"),
     {"weir.toml:14: rule[x].tiers.free: found a whole number; expected a table such as { limit = \"10/s\" "
      "}"}},
    {"RuleTierUnknownKey",
     with_rule("tiers = { free = { limit = \"1/s\", brust = 3 } }\n"),
     {"weir.toml:14: rule[x].tiers.free.brust: unknown key; did you mean \"burst\"?"}},
    {"RuleOverrideWithoutMatch",
     with_rule("overrides = [{ limit = \"1/s\" }]\n"),
     {"weir.toml:14: rule[x].overrides[#1].match: missing; expected a table: which requests"}},
    {"RuleCostZero",
     with_rule("cost = 0\n"),
     {"weir.toml:14: rule[x].cost: found 0; expected a whole number from 1 to 2147483648"}},
    {"RuleCostTooLarge",
     with_rule("cost = 2147483649\n"),
     {"weir.toml:14: rule[x].cost: found 2147483649; expected a whole number from 1 to 2147483648"}},
    {"RuleCostFromNoPointer",
     with_rule("cost = { json = \"amount\" }\n"),
     {"weir.toml:14: rule[x].cost.json: found \"amount\"; expected a JSON pointer (RFC 6901) such as "
      "\"/amount\" or \"/items/0/price\""}},
    {"RuleCostFromAPointerWithALooseTilde",
     with_rule("cost = { json = \"/a~2\" }\n"),
     {"weir.toml:14: rule[x].cost.json: found \"/a~2\"; expected a JSON pointer (RFC 6901) such as "
      "\"/amount\" or \"/items/0/price\""}},
    {"RuleCostFromAPointerThatNeedsEscaping",
     with_rule("cost = { json = '/a\"' }\n"),
     {"weir.toml:14: rule[x].cost.json: found \"/a\"\"; expected a JSON pointer (RFC 6901) such as "
      "\"/amount\" or \"/items/0/price\""}},
    {"RuleCostFromAVastBody",
     with_rule("cost = { json = \"/a\", max_body = \"17MiB\" }\n"),
     {"weir.toml:14: rule[x].cost.max_body: found 17825792 bytes; expected 1 byte to 16MiB, because weir "
      "holds such bodies in memory"}},
    {"RuleCostFromAHeaderOfABody",
     with_rule("cost = { header = \"X-Cost\", max_body = \"1KiB\" }\n"),
     {"weir.toml:14: rule[x].cost.max_body: found without json; only a cost that is read from the body has "
      "max_body"}},
    {"RuleCostFromAnAnswerWithoutReserve",
     with_rule("cost = { response_header = \"X-Cost\" }\n"),
     {"weir.toml:14: rule[x].cost.reserve: missing; expected a whole number: the charge until the response "
      "reports the cost"}},
    {"RuleCostReserveFromNowhere",
     with_rule("cost = { reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost: found no place of the cost in the answer; expected one: { response_header "
      "= \"…\", reserve = n } or "
      "{ "
      "response_json = \"…\", reserve = n }"}},
    {"RuleCostFromTwoPlacesOfTheAnswer",
     with_rule("cost = { response_header = \"X-Cost\", response_json = \"/cost\", reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost: found two places of the cost in the answer; expected one: { "
      "response_header = \"…\", reserve = n } "
      "or { "
      "response_json = \"…\", reserve = n }"}},
    {"RuleCostFromAnAnswerAndTheRequest",
     with_rule("cost = { response_header = \"X-Cost\", reserve = 5, default = 3 }\n"),
     {"weir.toml:14: rule[x].cost.default: found beside a cost that the response reports; expected reserve = "
      "n, and nothing of the request"}},
    {"RuleCostReserveNothing",
     with_rule("cost = { response_header = \"X-Cost\", reserve = 0 }\n"),
     {"weir.toml:14: rule[x].cost.reserve: found 0; expected a whole number from 1 to 2147483648"}},
    {"RuleCostNoPointer",
     with_rule("cost = { response_json = \"usage.total\", reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost.response_json: found \"usage.total\"; expected a JSON pointer such as "
      "\"/usage/total_tokens\""}},
    {"RuleCostFaultyPointer",
     with_rule("cost = { response_json = \"/a~2\", reserve = 5 }\n"),
     {"weir.toml:14: rule[x].cost.response_json: found \"/a~2\"; expected a JSON pointer such as "
      "\"/usage/total_tokens\""}},
    {"RuleCostBoundOfAHeader",
     with_rule("cost = { response_header = \"X-Cost\", reserve = 5, max_body = \"1KiB\" }\n"),
     {"weir.toml:14: rule[x].cost.max_body: found with response_header; only response_json and a reserve "
      "from "
      "the request use max_body"}},
    {"RuleCostBoundTooLarge",
     with_rule("cost = { response_json = \"/a\", reserve = 5, max_body = \"17MiB\" }\n"),
     {"weir.toml:14: rule[x].cost.max_body: found 17825792 bytes; expected 1 byte to 16MiB, because weir "
      "copies so much of each response"}},
    {"RuleCostFromNowhere",
     with_rule("cost = { default = 2 }\n"),
     {"weir.toml:14: rule[x].cost: found no place; expected one: { header = \"…\" }, { query = \"…\" } or "
      "{ json = \"/…\" }"}},
    {"RuleCostFromTwoPlaces",
     with_rule("cost = { header = \"a\", query = \"b\" }\n"),
     {"weir.toml:14: rule[x].cost: found several places; expected one: { header = \"…\" }, { query = \"…\" } "
      "or { json = \"/…\" }"}},
    {"RuleCostFromNoHeader",
     with_rule("cost = { header = \"X Cost\" }\n"),
     {"weir.toml:14: rule[x].cost.header: found \"X Cost\"; expected a name such as \"X-Cost\""}},
    {"RuleCostDefaultAndScale",
     with_rule("cost = { query = \"n\", default = 0, scale = 0 }\n"),
     {"weir.toml:14: rule[x].cost.default: found 0; expected a whole number from 1 to 2147483648",
      "weir.toml:14: rule[x].cost.scale: found 0; expected a whole number from 1 to 1000000000"}},
    {"RuleCostKey",
     with_rule("cost = { haeder = \"X-Cost\" }\n"),
     {"weir.toml:14: rule[x].cost.haeder: unknown key; did you mean \"header\"?"}},
    {"RuleCostAString",
     with_rule("cost = \"1\"\n"),
     {"weir.toml:14: rule[x].cost: found a string; expected a whole number from 1 to 2147483648"}},
    {"RuleStoreWithoutRedis",
     with_rule("store = \"redis\"\n"),
     {"weir.toml:14: rule[x].store: found \"redis\" without a Redis; expected [state] redis = { url = "
      "\"redis://…\" }"}},
    {"RuleStatus",
     with_rule("status = 200\n"),
     {"weir.toml:14: rule[x].status: found 200; expected a whole number from 400 to 599"}},
    {"RuleMode",
     with_rule("mode = \"shado\"\n"),
     {"weir.toml:14: rule[x].mode: found \"shado\"; did you mean \"shadow\"?"}},
    {"RuleChargeNothing",
     with_rule("charge = {}\n"),
     {"weir.toml:14: rule[x].charge.status: missing; expected status = [\"401\"], or grpc_status = "
      "[\"UNAUTHENTICATED\"] for gRPC calls"}},
    {"RuleChargeNoGrpcStatus",
     with_rule("charge = { grpc_status = [] }\n"),
     {"weir.toml:14: rule[x].charge.grpc_status: found none; expected at least one status such as "
      "\"UNAUTHENTICATED\""}},
    {"RuleChargeWrongGrpcStatuses",
     with_rule("charge = { grpc_status = [\"OK\", \"UNAUTHENTICATD\", \"17\"] }\n"),
     {"weir.toml:14: rule[x].charge.grpc_status: found \"UNAUTHENTICATD\"; expected a name or a number of OK "
      "(0), CANCELLED (1), UNKNOWN (2), INVALID_ARGUMENT (3), DEADLINE_EXCEEDED (4), NOT_FOUND (5), "
      "ALREADY_EXISTS (6), PERMISSION_DENIED (7), RESOURCE_EXHAUSTED (8), FAILED_PRECONDITION (9), ABORTED "
      "(10), OUT_OF_RANGE (11), UNIMPLEMENTED (12), INTERNAL (13), UNAVAILABLE (14), DATA_LOSS (15), "
      "UNAUTHENTICATED (16)",
      "weir.toml:14: rule[x].charge.grpc_status: found \"17\"; expected a name or a number of OK (0), "
      "CANCELLED (1), UNKNOWN (2), INVALID_ARGUMENT (3), DEADLINE_EXCEEDED (4), NOT_FOUND (5), "
      "ALREADY_EXISTS (6), PERMISSION_DENIED (7), RESOURCE_EXHAUSTED (8), FAILED_PRECONDITION (9), ABORTED "
      "(10), OUT_OF_RANGE (11), UNIMPLEMENTED (12), INTERNAL (13), UNAVAILABLE (14), DATA_LOSS (15), "
      "UNAUTHENTICATED (16)"}},
    {"RuleChargeOfCallsBesideASettledCost",
     with_rule("charge = { grpc_status = \"OK\" }\ncost = { response_header = \"X-Cost\", reserve = 2 }\n"),
     {"weir.toml:15: rule[x].cost: found a cost that the response reports beside charge.grpc_status; "
      "expected one of them, because the status of a call comes after its messages"}},
    {"RuleChargeNoStatus",
     with_rule("charge = { status = [] }\n"),
     {"weir.toml:14: rule[x].charge.status: found none; expected at least one status such as \"401\""}},
    {"RuleChargeWrongStatuses",
     with_rule("charge = { status = [\"40\", \"6xx\", \"504-500\", \"401\"] }\n"),
     {"weir.toml:14: rule[x].charge.status: found \"40\"; expected a status such as \"401\", a class such as "
      "\"5xx\", or a range such as \"500-504\", from 100 to 599",
      "weir.toml:14: rule[x].charge.status: found \"6xx\"; expected a status such as \"401\", a class such "
      "as "
      "\"5xx\", or a range such as \"500-504\", from 100 to 599",
      "weir.toml:14: rule[x].charge.status: found \"504-500\", whose end is below its start; expected a "
      "status "
      "such as \"401\", a class such as \"5xx\", or a range such as \"500-504\", from 100 to 599"}},
    {"RuleChargeOfAQueue",
     with_rule("algorithm = \"leaky_bucket\"\ncharge = { status = \"5xx\" }\n"),
     {"weir.toml:15: rule[x].charge: found beside leaky_bucket, which cannot correct a charge after the "
      "response; expected another algorithm, in a separate rule"}},
    {"RuleSettledCostOfConcurrency",
     with("[[rule]]\nname = \"x\"\nlimit = 3\nalgorithm = \"concurrency\"\n"
          "cost = { response_header = \"X-Cost\", reserve = 1 }\n"),
     {"weir.toml:15: rule[x].cost: found beside an algorithm that counts requests in flight; expected an "
      "algorithm that counts over time"}},
    {"RuleSoftWithoutPercent",
     with_rule("soft = \"10\"\n"),
     {"weir.toml:14: rule[x].soft: found \"10\"; expected a share from \"1%\" to \"100%\": write soft = "
      "\"10%\""}},
    {"RuleSoftTooMuch",
     with_rule("soft = \"101%\"\n"),
     {"weir.toml:14: rule[x].soft: found \"101%\"; expected a share from \"1%\" to \"100%\""}},
    {"RuleSoftLessThanOne",
     with_rule("soft = \"5%\"\n"),
     {"weir.toml:14: rule[x].soft: found \"5%\" of 10, which is less than one request; expected a larger "
      "share"}},
    {"RuleSoftANumber",
     with_rule("soft = 0.1\n"),
     {"weir.toml:14: rule[x].soft: found a fraction; expected a share such as \"5%\""}},
    {"RulePenaltyWithoutLength",
     with_rule("penalty = { after = 3 }\n"),
     {"weir.toml:14: rule[x].penalty.for: missing; expected a duration such as \"10s\": how long the first "
      "penalty lasts, from 1s to 366day"}},
    {"RulePenaltyTooShort",
     with_rule("penalty = { for = \"500ms\" }\n"),
     {"weir.toml:14: rule[x].penalty.for: found 500ms; expected 1s to 366day"}},
    {"RulePenaltyNoDuration",
     with_rule("penalty = { for = \"10 minutes\" }\n"),
     {"weir.toml:14: rule[x].penalty.for: \"10 minutes\" is not a duration; write for = \"10min\""}},
    {"RulePenaltyLongerThanTheMost",
     with_rule("penalty = { for = \"2h\", most = \"1h\" }\n"),
     {"weir.toml:14: rule[x].penalty.most: found 1h, less than for, 2h; expected that or more"}},
    {"RulePenaltyLongerThanTheDefaultMost",
     with_rule("penalty = { for = \"2day\" }\n"),
     {"weir.toml:14: rule[x].penalty.for: found 2day, longer than most, which is 1day by default; expected a "
      "longer most beside it"}},
    {"RulePenaltyForgetsAtOnce",
     with_rule("penalty = { for = \"1min\", forget = \"0s\" }\n"),
     {"weir.toml:14: rule[x].penalty.forget: found 0us; expected 1s to 366day"}},
    {"RulePenaltyAndElastic",
     with_rule("penalty = { for = \"1min\" }\nelastic = { limit = \"20/s\", while_load_below = 0.5 }\n"),
     {"weir.toml:14: rule[x].penalty: found beside elastic (of the rule, a tier or an override); expected "
      "one "
      "of them"}},
    {"RulePenaltyAndLease",
     leased("limit = \"100/s\"\nlease = 10\npenalty = { for = \"1min\" }\n"),
     {"weir.toml:17: rule[y].lease: found beside penalty, which needs Redis to see every refusal; expected "
      "one of them"}},
    {"RulePenaltyOfConcurrency",
     "[[listener]]\naddress = \"127.0.0.1:8080\"\n[[route]]\nrespond = { status = 204 }\n[[rule]]\nname = "
     "\"y\"\nlimit = 10\nalgorithm = \"concurrency\"\npenalty = { for = \"1min\" }\n",
     {"weir.toml:9: rule[y].penalty: found beside an algorithm that counts requests in flight; expected an "
      "algorithm that counts over time"}},
    {"RuleElasticWithoutLoad",
     with_rule("elastic = { limit = \"20/s\" }\n"),
     {"weir.toml:14: rule[x].elastic.while_load_below: missing; expected a load from 0.01 to 1, such as "
      "0.7, below which the higher limit holds"}},
    {"RuleElasticLoad",
     with_rule("elastic = { limit = \"20/s\", while_load_below = 70 }\n"),
     {"weir.toml:14: rule[x].elastic.while_load_below: found a number out of range; expected a share of the "
      "load "
      "from 0.01 to 1, such as 0.7"}},
    {"RuleElasticLoadAString",
     with_rule("elastic = { limit = \"20/s\", while_load_below = \"70%\" }\n"),
     {"weir.toml:14: rule[x].elastic.while_load_below: found a string; expected a share of the load from "
      "0.01 to "
      "1, such as 0.7"}},
    {"RuleElasticLower",
     with_rule("elastic = { limit = \"599/min\", while_load_below = 0.5 }\n"),
     {"weir.toml:14: rule[x].elastic.limit: found a lower rate than the limit that elastic raises, 10/s"}},
    {"RuleElasticLimit",
     with_rule("elastic = { limit = \"20\", while_load_below = 1 }\n"),
     {"weir.toml:14: rule[x].elastic.limit: \"20\" is not a rate (no '/'); write COUNT/PERIOD with a period "
      "in s, min, h or day, such as \"10/s\" or \"20/10s\""}},
    {"RuleElasticBurst",
     with_rule("elastic = { limit = \"20/s\", burst = 9, while_load_below = 0.5 }\n"),
     {"weir.toml:14: rule[x].elastic.burst: found less than the limit that elastic raises, 10"}},
    {"RuleElasticAndSoft",
     with_rule("soft = \"10%\"\nelastic = { limit = \"20/s\", while_load_below = 0.5 }\n"),
     {"weir.toml:15: rule[x].elastic: found beside soft; expected one of them"}},
    {"RuleLease",
     with_rule("lease = 10\n"),
     {"weir.toml:14: rule[x].lease: found in a rule that is kept in memory and needs no lease; expected "
      "store = \"redis\""}},
    {"RuleLeaseBesideABurstThatIsWrong",
     leased("limit = \"1/day\"\nburst = 60000\nlease = \"10%\"\n"),
     {"weir.toml:16: rule[y].limit: a capacity of 60000 takes over 100 years to fill at 1/day; lower it or "
      "raise the rate"}},
    {"RuleLeaseTooMuch",
     leased("limit = \"100/s\"\nlease = \"26%\"\n"),
     {"weir.toml:17: rule[y].lease: found \"26%\"; expected a share from \"1%\" to \"25%\", or a number up "
      "to "
      "a quarter of the limit, or of the burst, 25"}},
    {"RuleLeaseNumber",
     leased("limit = \"100/s\"\nlease = 26\n"),
     {"weir.toml:17: rule[y].lease: found 26; expected a share from \"1%\" to \"25%\", or a number up to a "
      "quarter of the limit, or of the burst, 25"}},
    {"RuleLeaseBelowTheCost",
     leased("limit = \"100/s\"\nlease = 19\ncost = 10\n"),
     {"weir.toml:17: rule[y].lease: found 19, which is less than two requests of cost 10 and saves no call "
      "to Redis; expected more, or no lease"}},
    {"RuleLeaseTooLittle",
     leased("limit = \"10/s\"\nlease = \"10%\"\n"),
     {"weir.toml:17: rule[y].lease: found \"10%\" of 10, which is less than two units and saves no call to "
      "Redis; expected more, or no lease"}},
    {"RuleLeaseOfAQueue",
     leased("limit = \"100/s\"\nlease = 10\nalgorithm = \"leaky_bucket\"\n"),
     {"weir.toml:17: rule[y].lease: found beside leaky_bucket, which schedules each request after the one "
      "before; expected token_bucket, gcra, fixed_window or sliding_window"}},
    {"RuleLeaseOfALog",
     leased("limit = \"100/s\"\nlease = 10\nalgorithm = \"sliding_log\"\n"),
     {"weir.toml:17: rule[y].lease: found beside sliding_log, which stores the time of each request; "
      "expected sliding_window"}},
    {"RuleLeaseOfSteps",
     leased("limit = \"100/s\"\nlease = 10\nrefill = \"stepwise\"\n"),
     {"weir.toml:17: rule[y].lease: found beside refill = \"stepwise\", whose periods start with the first "
      "request; expected refill = \"continuous\""}},
    {"RuleLeaseOfConcurrency",
     leased("limit = 100\nlease = 10\nalgorithm = \"concurrency\"\n"),
     {"weir.toml:17: rule[y].lease: found beside an algorithm that counts requests in flight; expected an "
      "algorithm that counts over time"}},
    {"RuleLeaseInShadow",
     leased("limit = \"100/s\"\nlease = 10\nmode = \"shadow\"\n"),
     {"weir.toml:17: rule[y].lease: found in a shadow rule, which must charge exactly as if it were "
      "enforced; expected mode = \"enforce\""}},
    {"RuleLeaseAndElastic",
     leased("limit = \"100/s\"\nlease = 10\nelastic = { limit = \"200/s\", while_load_below = 0.5 }\n"),
     {"weir.toml:17: rule[y].lease: found beside elastic (of the rule, a tier or an override); expected one "
      "of them"}},
    {"RuleLeaseAndElasticOfATier",
     leased("limit = \"100/s\"\nlease = 10\n"
            "tiers.pro = { limit = \"100/s\", elastic = { limit = \"200/s\", while_load_below = 0.5 } }\n"),
     {"weir.toml:17: rule[y].lease: found beside elastic (of the rule, a tier or an override); expected one "
      "of them"}},
    {"RuleLeaseAndElasticOfAnOverride",
     leased("limit = \"100/s\"\nlease = 10\noverrides = [{ match = { path = \"/x\" }, limit = \"100/s\", "
            "elastic = { limit = \"200/s\", while_load_below = 0.5 } }]\n"),
     {"weir.toml:17: rule[y].lease: found beside elastic (of the rule, a tier or an override); expected one "
      "of them"}},
    {"RuleLeaseAndCharge",
     leased("limit = \"100/s\"\nlease = 10\ncharge = { status = [\"401\"] }\n"),
     {"weir.toml:17: rule[y].lease: found beside a cost or charge that depends on the response; expected one "
      "of them"}},
    {"VariableUnset",
     with_rule("body = \"${WEIR_TEST_UNSET}\"\n"),
     {"weir.toml:14: rule[x].body: environment variable WEIR_TEST_UNSET is not set; set it, or write "
      "${WEIR_TEST_UNSET:-text} for a default"}},
    {"VariableUnclosed",
     with_rule("body = \"${WEIR_TEST_UNSET\"\n"),
     {"weir.toml:14: rule[x].body: \"${\" without \"}\"; expected ${NAME} or ${NAME:-text}"}},
    {"VariableOfNoName",
     with_rule("body = \"${1A}\"\n"),
     {"weir.toml:14: rule[x].body: \"${1A}\" names no environment variable; expected ${NAME} or "
      "${NAME:-text}"}},
};

class RuleMistakes : public ::testing::TestWithParam<WrongConfiguration> {};

TEST_P(RuleMistakes, ErrorNamesTheLineTheKeyAndTheExpectedValue) {
  EXPECT_THAT(mistakes_in(GetParam().text), ::testing::ElementsAreArray(GetParam().mistakes));
}

// Overrides and tiers have numbers of 16 bits. The rule itself has the number 0, and its messages have the
// number after the last tier, at most 65,535. So 65,534 numbers are left.
TEST(Variants, MoreThan65534TiersAndOverridesInARuleAreRejected) {
  const auto with_overrides = [](std::size_t count) {
    std::string text = "overrides = [";
    for (std::size_t i = 0; i < count; ++i) text += "{match={path=\"/\"},limit=\"1/s\"},";
    return with_rule(text + "]\ntiers = { a = { limit = \"1/s\" } }\n");
  };
  EXPECT_THAT(
      mistakes_in(with_overrides(65'534)),
      ::testing::ElementsAre("weir.toml:14: rule[x].overrides: found 65535 tiers and overrides; expected at "
                             "most 65534 in a rule"));
  EXPECT_THAT(mistakes_in(with_overrides(65'533)), ::testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(InvalidConfigurations, RuleMistakes, ::testing::ValuesIn(kWrongRules),
                         [](const auto& wrong) { return wrong.param.name; });

}  // namespace
}  // namespace weir::config::test
