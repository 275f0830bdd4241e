// The keys of [[rule]], and of the conditions that routes share with rules.
#include "config/schema/schema_keys.hpp"

#include "weir/limit/penalty.hpp"
#include "weir/limit/rate.hpp"

namespace weir::config {

namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr auto kMostCost = static_cast<std::int64_t>(limit::kMaxCost);

constexpr KeySpec kMaxBody =
    key("max_body", Kind::Size, "64KiB",
        "largest body that weir reads for body_contains and json; a longer one is refused (413)");

constexpr KeySpec kTextShapeKeys[] = {{.kind = Kind::Text}, {.kind = Kind::Present}};
constexpr TableSpec kTextShapes{kTextShapeKeys};
constexpr Choice kSchemes[] = {{"http"}, {"https"}};
constexpr KeySpec kMatchKeys[] = {
    like(pattern::kPath, key("path", Kind::Text, "",
                             "\"/login\": this path; \"/api/*\": paths below; \"~regex\": paths in which the "
                             "expression is found")),
    key("methods", Kind::OneOrMore, "", "any of these methods"),
    key("host", Kind::OneOrMore, "",
        "any of these hosts, without the port: \"api.example.com\", \"*.example.com\" (hosts below, not "
        "example.com itself) or \"~regex\""),
    choice("scheme", kSchemes, "", "http or https; of a trusted proxy, what its X-Forwarded-Proto says"),
    key("listener", Kind::OneOrMore, "", "any of the listeners with these names"),
    key("domains", Kind::OneOrMore, "", "any of these domains of a question; in rules and overrides"),
    named(
        "descriptor", kTextShapes,
        "all of these values in a descriptor of a question: key = \"text\", \"~regex\", or \"*\" or true if "
        "it has to be present; in rules and overrides"),
    key("route", Kind::OneOrMore, "", "any of the routes with these names; in rules and overrides"),
    named("headers", kTextShapes,
          "all of these headers: name = \"text\", \"~regex\", or true if it has to be present"),
    named("query", kTextShapes, "all of these parameters, likewise"),
    named("json", kTextShapes,
          "all of these values in the JSON body: pointer = \"text\", \"~regex\", or true if it has to be "
          "present"),
    key("tier", Kind::OneOrMore, "", "any of these tiers"),
    named("claims", kTextShapes,
          "all of these claims of the bearer token: name = \"text\", \"~regex\", or true if it has to be "
          "present; of a list, one element is enough; in rules and overrides"),
    key("ip", Kind::OneOrMore, "", "any of these addresses and blocks"),
    table("not", schema::kMatch, "the conditions in it must not all hold"),
    like(pattern::kCountry,
         key("country", Kind::OneOrMore, "", "any of these countries: two capital letters, by [client] geo")),
    key("city", Kind::OneOrMore, "", "any of these cities, by their English names, by [client] geo"),
    like(pattern::kRegion,
         key("region", Kind::OneOrMore, "", "any of these regions: \"CH-GE\" (ISO 3166-2), by [client] geo")),
    like(pattern::kAsn,
         key("asn", Kind::OneOrMore, "", "any of these autonomous systems: \"AS3303\", by [client] geo")),
    like(pattern::kHours,
         key("hours", Kind::Text, "", "time of day, \"HH:MM-HH:MM\", without the end; it may span midnight")),
    like(pattern::kDay, key("days", Kind::OneOrMore, "", "any of mon … sun: days on which the hours begin")),
    key("timezone", Kind::Text, "UTC", "time zone of hours and days, such as \"Europe/Zurich\""),
    key("body_contains", Kind::OneOrMore, "", "any of these texts is in the body, without case"),
    kMaxBody,
};

constexpr Choice kAlgorithms[] = {
    {"token_bucket"}, {"gcra"},           {"leaky_bucket"}, {"fixed_window"},
    {"sliding_log"},  {"sliding_window"}, {"concurrency"},  {"adaptive_concurrency"}};
constexpr Choice kRefills[] = {{"continuous"}, {"stepwise"}};
constexpr Choice kAligns[] = {{"day"}, {"week"}, {"month"}};
constexpr Choice kOnMissing[] = {{"skip"}, {"ip"}, {"reject"}};
constexpr Choice kMessagesOver[] = {{"delay"}, {"close"}};
constexpr Choice kDirections[] = {{"client"}, {"server"}, {"both"}};
constexpr Choice kOnStoreFailure[] = {{"local"}, {"open"}, {"closed"}};
constexpr Choice kModes[] = {{"enforce"}, {"shadow"}};

// The keys that set a limit: its rate, burst, queue and so on. Rules, tiers and overrides have these keys.
constexpr KeySpec kLimit =
    key("limit", Kind::Limit, "", "COUNT/PERIOD, such as \"10/s\" or \"20/10s\"; concurrency: a number");
constexpr KeySpec kBurst =
    whole("burst", 0, kBillion, "",
          "token_bucket: capacity, default the count in limit; gcra: further requests at once, default 0");
constexpr KeySpec kQueue =
    whole("queue", 0, kBillion, "", "leaky_bucket: most requests that wait, default the count in limit");
constexpr KeySpec kMaxWait =
    key("max_wait", Kind::Duration, "", "leaky_bucket: longest wait; absent: bounded by queue");

constexpr KeySpec kSoft =
    like(pattern::kMargin,
         key("soft", Kind::Text, "", "\"10%\": weir admits this much above the limit, and tells the client"));
constexpr KeySpec kElastic = table("elastic", schema::kElastic, "a higher limit while the load is low");
constexpr KeySpec kMin = whole("min", 1, 10'000, "", "adaptive_concurrency: lowest limit");
constexpr KeySpec kMax = whole("max", 1, 10'000, "", "adaptive_concurrency: highest limit");

constexpr KeySpec kTierShapeKeys[] = {{.kind = Kind::Subtable, .inner = &schema::kTier}};
constexpr TableSpec kTierShapes{kTierShapeKeys};
constexpr KeySpec kCostShapeKeys[] = {{.kind = Kind::Whole, .least = 1, .most = kMostCost},
                                      {.kind = Kind::Subtable, .inner = &schema::kCost}};
constexpr TableSpec kCostShapes{kCostShapeKeys};
constexpr KeySpec kLeaseShapeKeys[] = {{.kind = Kind::Text, .pattern = pattern::kLease},
                                       {.kind = Kind::Whole, .least = 2, .most = kBillion / 4}};
constexpr TableSpec kLeaseShapes{kLeaseShapeKeys};

constexpr Choice kHolds[] = {{"client"}, {"answer"}};  // in the order of the enumerators of policy::Hold
constexpr KeySpec kRuleKeys[] = {
    like(pattern::kName, required("name", Kind::Text, "unique name, shown in headers, logs and metrics")),
    kLimit,
    kBurst,
    kQueue,
    kMaxWait,
    kMin,
    kMax,
    whole("queue_per_client", 1, kBillion, "",
          "leaky_bucket: most requests of one client that wait (known api_key|user|ip); absent: bounded by "
          "queue"),
    choice("algorithm", kAlgorithms, "token_bucket", "how the rule counts"),
    choice("refill", kRefills, "continuous",
           "token_bucket: refilled all the time, or by whole amounts at the end of each period"),
    choice(
        "align", kAligns, "",
        "fixed_window: windows are days, weeks (from Monday) or months of the calendar; absent: counted from "
        "the Unix epoch"),
    key("timezone", Kind::Text, "", "time zone of align, such as \"Europe/Berlin\"; absent: UTC"),
    whole("buckets", 2, 1'000, "",
          "sliding_window: number of pieces whose sum counts; absent: two windows, the older one by weight"),
    table("match", schema::kMatch, "which requests; absent: all"),
    like(pattern::kKeyPart,
         key("key", Kind::Texts, "api_key|ip", "what weir counts by; [] counts all requests together")),
    key("max_body", Kind::Size, "64KiB",
        "largest body that weir reads for json: and form: in the key, at most 16MiB; a longer one is refused "
        "(413)"),
    choice("on_missing", kOnMissing, "skip",
           "if a part of the key is missing: the rule does not apply, the address is used, or the request is "
           "refused"),
    named("tiers", kTierShapes, "other limits for clients of a tier"),
    tables("overrides", schema::kOverride,
           "other limits for matching requests; the first that matches is used"),
    mixed("cost", kCostShapes, "1", "units that a request costs: a number, or where the number is found"),
    key("overdraft", Kind::Bool, "false",
        "charge questions their whole cost, even beyond the limit, because it is used already; only for "
        "rules "
        "by descriptors"),
    choice("store", kStores, "", "where the rule keeps its state; default as in [state]"),
    choice("on_store_failure", kOnStoreFailure, "local",
           "while Redis does not answer: enforce this weir's share of the limit, admit all, or answer 503"),
    choice("hold", kHolds, "client",
           "concurrency, adaptive_concurrency: a request counts until its client has the answer or leaves, "
           "or until the server has answered"),
    choice("mode", kModes, "enforce", "enforce: the rule refuses; shadow: it only counts"),
    whole("status", 400, 599, "429", "status of a refusal"),
    key("body", Kind::Text, "", "text of a refusal; absent: JSON"),
    key("content_type", Kind::Text, "text/plain; charset=utf-8", "Content-Type of body"),
    named("headers", kFieldShapes, "further header fields of a refusal: name = \"text\""),
    like(pattern::kBudget, key("retry_after_jitter", Kind::Text, "",
                               "random share by which weir lengthens Retry-After; absent: as in [server]")),
    table("charge", schema::kCharge, "answers that are charged; absent: all"),
    like(pattern::kBandwidth,
         key("bandwidth", Kind::Text, "",
             "\"1MiB/s\": paces the bodies of each key, and refuses nothing; such a rule has "
             "no limit")),
    key("messages", Kind::Rate, "",
        "rate of a client's WebSocket and gRPC messages, counted beside its requests; absent: no limit"),
    whole("messages_burst", 1, kBillion, "", "most messages at once; absent: the count in messages"),
    choice("messages_over", kMessagesOver, "delay",
           "a message above the rate waits, or ends the WebSocket (1008) or the gRPC call (8)"),
    choice("direction", kDirections, "client",
           "who sends the gRPC messages that count; of WebSockets, servers' messages never count"),
    kSoft,
    kElastic,
    table("adapt", schema::kAdapt, "a lower limit while an upstream is slow or fails"),
    table("penalty", schema::kPenalty, "longer refusals of a key whose limiter has refused it repeatedly"),
    misplaced("priority", "priority in a [[route]], or in one of the rule's tiers"),
    mixed("lease", kLeaseShapes, "",
          "units of a busy key that a weir may take from Redis in advance: \"10%\" of the limit, or a "
          "number; absent: none"),
};
// A cost or reserve can be the sum of numbers in a JSON body. The setting selects the numbers by JSON
// pointers, or by JSON pointers with weights.
constexpr KeySpec kWeightShapeKeys[] = {{.kind = Kind::Share, .least = 0, .most = 100'000'000}};
constexpr TableSpec kWeightShapes{kWeightShapeKeys};
constexpr KeySpec kTermShapeKeys[] = {{.kind = Kind::OneOrMore, .pattern = pattern::kRooted},
                                      {.kind = Kind::Named, .inner = &kWeightShapes}};
constexpr TableSpec kTermShapes{kTermShapeKeys};
constexpr KeySpec kReserveShapeKeys[] = {{.kind = Kind::Whole, .least = 1, .most = kMostCost},
                                         {.kind = Kind::Subtable, .inner = &schema::kReserve}};
constexpr TableSpec kReserveShapes{kReserveShapeKeys};
constexpr KeySpec kReserveKeys[] = {
    needed(mixed("json", kTermShapes, "",
                 "JSON pointers to what the request asks for, such as \"/max_tokens\"; written as in "
                 "response_json")),
    needed(whole("default", 1, kMostCost, "", "reserve of a request that asks for nothing")),
    whole("most", 1, kMostCost, "", "largest reserve; a request that asks for more reserves this"),
};
constexpr KeySpec kStreamKeys[] = {
    whole("per_event", 1, kMostCost, "1", "estimated cost of each event of a stream"),
    key("cut", Kind::Bool, "false", "end the stream where the budget ends"),
};
constexpr Choice kBodies[] = {{"response"}, {"request"}, {"both"}};  // in the order of policy::Bodies
constexpr KeySpec kCostKeys[] = {
    key("header", Kind::Text, "", "name of the header field that holds the cost"),
    key("query", Kind::Text, "", "name of the query parameter that holds the cost"),
    like(pattern::kRooted,
         key("json", Kind::Text, "", "JSON pointer to the cost in the body, such as \"/amount\"")),
    key("response_header", Kind::Text, "", "name of the answer's header field that holds the cost"),
    mixed("response_json", kTermShapes, "",
          "JSON pointer to the cost in the answer's body or stream; \"/a|/b\": the first that is present; a "
          "list: the sum; a table: the sum with weights"),
    choice("bytes", kBodies, "", "the cost is the octets of these bodies that passed"),
    key("per", Kind::Size, "1KiB", "bytes: octets of one unit; a part of a unit counts as a whole one"),
    mixed("reserve", kReserveShapes, "",
          "charged until the answer names the cost, and kept if the answer names none: a number, or where "
          "the request names it; bytes: a number, default the Content-Length of a request that counts, or "
          "1"),
    key("max_body", Kind::Size, "64KiB",
        "largest body that weir reads, at most 16MiB; a longer request is refused (413); a longer answer "
        "costs the reserve; a stream may be longer"),
    table(
        "stream", schema::kStream,
        "estimate a stream while it passes, and charge more than the reserve if necessary; absent: settle at "
        "its end"),
    whole("default", 1, kMostCost, "1", "cost of a request that names none"),
    whole("scale", 1, kBillion, "",
          "factor for decimal numbers, whose product is rounded up; absent: whole numbers only"),
};
constexpr KeySpec kChargeKeys[] = {
    like(pattern::kStatuses,
         key("status", Kind::OneOrMore, "",
             "statuses that are charged: \"401\", \"5xx\", \"500-504\"; other answers return what was held")),
    like(pattern::kGrpcStatus,
         key("grpc_status", Kind::OneOrMore, "",
             "statuses of gRPC calls that are charged: \"UNAUTHENTICATED\" or \"16\"; other calls return "
             "what was held")),
};
constexpr KeySpec kLoadShapeKeys[] = {{.kind = Kind::Share, .least = 1, .most = 100}};
constexpr TableSpec kLoadShapes{kLoadShapeKeys};
constexpr KeySpec kElasticKeys[] = {
    kLimit,
    kBurst,
    kQueue,
    kMaxWait,
    kMin,
    kMax,
    needed(mixed("while_load_below", kLoadShapes, "",
                 "a load from 0.01 to 1, such as 0.7, below which the higher limit holds")),
};
constexpr KeySpec kAdaptKeys[] = {
    required("upstream", Kind::Text, "name of the upstream whose answers count"),
    key("latency_above", Kind::Duration, "",
        "the upstream is unwell while the mean time to the head of its answers exceeds this"),
    like(pattern::kShareBelowAll,
         key("errors_above", Kind::Text, "",
             "the upstream is unwell while more than this share of requests to it fail, such as \"5%\"")),
    like(pattern::kFloor, key("floor", Kind::Text, "20%", "lowest share of the limit, a multiple of 5%")),
};
constexpr KeySpec kPenaltyKeys[] = {
    whole("after", 1, limit::kMostViolations, "1",
          "number of refusals by the rule's limiter, within forget, that starts a penalty"),
    required("for", Kind::Duration, "how long the first penalty lasts, from 1s to 366day"),
    whole("grows", 1, limit::kMostGrowth, "2",
          "factor of the length for each penalty that began within forget before; 1: all are equal"),
    key("most", Kind::Duration, "1day", "longest penalty; from the length in for to 366day"),
    key("forget", Kind::Duration, "1day", "how long refusals and earlier penalties count, up to 366day"),
};
constexpr KeySpec kTierKeys[] = {
    kLimit,
    kBurst,
    kQueue,
    kMaxWait,
    kMin,
    kMax,
    kSoft,
    kElastic,
    whole("priority", 0, 9, "", "priority of the tier's requests on every route; the same in all rules")};
constexpr KeySpec kOverrideKeys[] = {needed(table("match", schema::kMatch, "which requests")),
                                     kLimit,
                                     kBurst,
                                     kQueue,
                                     kMaxWait,
                                     kMin,
                                     kMax,
                                     kSoft,
                                     kElastic};

}  // namespace

namespace schema {
constinit const TableSpec kMatch{kMatchKeys}, kRule{kRuleKeys}, kCost{kCostKeys}, kReserve{kReserveKeys},
    kStream{kStreamKeys}, kCharge{kChargeKeys}, kElastic{kElasticKeys}, kAdapt{kAdaptKeys},
    kPenalty{kPenaltyKeys}, kTier{kTierKeys}, kOverride{kOverrideKeys};
}  // namespace schema

}  // namespace weir::config
