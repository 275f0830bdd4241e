// The keys of [[rule]], and of the conditions that routes share with rules.
#include "config/schema/schema_keys.hpp"

#include "weir/limit/rate.hpp"

namespace weir::app {

namespace {

constexpr std::int64_t kBillion = 1'000'000'000;
constexpr auto kMostCost = static_cast<std::int64_t>(limit::kMaxCost);

constexpr KeySpec kMaxBody = key("max_body", Kind::Size, "64KiB",
                                 "bodies are read into memory up to here; longer ones are refused (413)");

constexpr KeySpec kTextShapeKeys[] = {{.kind = Kind::Text}, {.kind = Kind::Present}};
constexpr TableSpec kTextShapes{kTextShapeKeys};
constexpr KeySpec kMatchKeys[] = {
    like(pattern::kPath,
         key("path", Kind::Text, "", "\"/login\" exact, \"/api/*\" below, \"~regex\" found in it")),
    key("methods", Kind::OneOrMore, "", "any of"),
    key("host", Kind::Text, "", "name without port"),
    named("headers", kTextShapes, "all of: name = \"text\", \"~regex\" or true for present"),
    named("query", kTextShapes, "all of, likewise"),
    key("tier", Kind::OneOrMore, "", "any of"),
    key("ip", Kind::OneOrMore, "", "any of: addresses and blocks"),
    table("not", schema::kMatch, "all that it holds together must not hold"),
    like(pattern::kCountry,
         key("country", Kind::OneOrMore, "", "any of: two capital letters, by [client] geo")),
    like(pattern::kHours, key("hours", Kind::Text, "",
                              "\"HH:MM-HH:MM\": the start counts, the end does not; may span midnight")),
    like(pattern::kDay, key("days", Kind::OneOrMore, "", "any of mon … sun: those on which the hours begin")),
    key("timezone", Kind::Text, "UTC", "where clocks show them, such as \"Europe/Zurich\""),
    key("body_contains", Kind::OneOrMore, "", "any of, without case: texts that stand in the body"),
    kMaxBody,
};

constexpr Choice kAlgorithms[] = {
    {"token_bucket"}, {"gcra"},           {"leaky_bucket"}, {"fixed_window"},
    {"sliding_log"},  {"sliding_window"}, {"concurrency"},  {"adaptive_concurrency"}};
constexpr Choice kRefills[] = {{"continuous"}, {"stepwise"}};
constexpr Choice kAligns[] = {{"day"}, {"month"}};
constexpr Choice kOnMissing[] = {{"skip"}, {"ip"}, {"reject"}};
constexpr Choice kMessagesOver[] = {{"delay"}, {"close"}};
constexpr Choice kOnStoreFailure[] = {{"local"}, {"open"}, {"closed"}};
constexpr Choice kModes[] = {{"enforce"}, {"shadow"}};

// Keys that a rule, a tier and an override share: the numbers of the algorithm.
constexpr KeySpec kLimit =
    key("limit", Kind::Limit, "", "COUNT/PERIOD, as \"10/s\" or \"20/10s\"; concurrency: a number");
constexpr KeySpec kBurst = whole("burst", 0, kBillion, "",
                                 "token_bucket: capacity, default the count in limit; gcra: "
                                 "so many more at once, default 0");
constexpr KeySpec kQueue =
    whole("queue", 0, kBillion, "", "leaky_bucket: most that wait, default the count in limit");
constexpr KeySpec kMaxWait =
    key("max_wait", Kind::Duration, "", "leaky_bucket: the longest wait; absent: the queue bounds it");

constexpr KeySpec kSoft = like(
    pattern::kMargin, key("soft", Kind::Text, "", "\"10%\": so much over the limit is admitted, and told"));
constexpr KeySpec kElastic = table("elastic", schema::kElastic, "a higher limit while the system has room");
constexpr KeySpec kMin = whole("min", 1, 10'000, "", "adaptive_concurrency: the limit never falls below");
constexpr KeySpec kMax = whole("max", 1, 10'000, "", "adaptive_concurrency: nor rises above");

constexpr KeySpec kTierShapeKeys[] = {{.kind = Kind::Subtable, .inner = &schema::kTier}};
constexpr TableSpec kTierShapes{kTierShapeKeys};
constexpr KeySpec kCostShapeKeys[] = {{.kind = Kind::Whole, .least = 1, .most = kMostCost},
                                      {.kind = Kind::Subtable, .inner = &schema::kCost}};
constexpr TableSpec kCostShapes{kCostShapeKeys};
constexpr KeySpec kLeaseShapeKeys[] = {{.kind = Kind::Text, .pattern = pattern::kLease},
                                       {.kind = Kind::Whole, .least = 2, .most = kBillion / 4}};
constexpr TableSpec kLeaseShapes{kLeaseShapeKeys};

constexpr Choice kHolds[] = {{"client"}, {"answer"}};  // in the order of policy::Hold
constexpr KeySpec kRuleKeys[] = {
    like(pattern::kName, required("name", Kind::Text, "unique; stands in headers, logs and metrics")),
    kLimit,
    kBurst,
    kQueue,
    kMaxWait,
    kMin,
    kMax,
    whole("queue_per_client", 1, kBillion, "",
          "leaky_bucket: most places of one client (known api_key|user|ip); absent: the queue bounds it"),
    choice("algorithm", kAlgorithms, "token_bucket", "how it counts"),
    choice("refill", kRefills, "continuous",
           "of a token bucket: all the time, or whole amounts at the end of each period"),
    choice("align", kAligns, "", "of fixed windows: to the calendar; absent: to the epoch"),
    key("timezone", Kind::Text, "", "whose calendar, as \"Europe/Berlin\"; absent: UTC"),
    whole("buckets", 2, 1'000, "", "of a sliding window: the sum of so many; absent: two, by weight"),
    table("match", schema::kMatch, "which requests; absent: every one"),
    like(pattern::kKeyPart,
         key("key", Kind::Texts, "api_key|ip", "who is counted apart; [] counts all together")),
    choice("on_missing", kOnMissing, "skip",
           "a part of the key is missing: rule left out, address instead, or refused"),
    named("tiers", kTierShapes, "other numbers for clients of a tier"),
    tables("overrides", schema::kOverride, "other numbers for what matches; the first that does"),
    mixed("cost", kCostShapes, "1", "units that a request takes: a number, or where it says so"),
    choice("store", kStores, "", "default what [state] store says"),
    choice("on_store_failure", kOnStoreFailure, "local",
           "Redis is away: own share of the limit, admit, or 503"),
    choice("hold", kHolds, "client",
           "concurrency, adaptive_concurrency: a place is held until the client has its answer or leaves, or "
           "until "
           "the server has answered"),
    choice("mode", kModes, "enforce", "shadow: counted, never enforced"),
    whole("status", 400, 599, "429", "of a refusal"),
    key("body", Kind::Text, "", "of a refusal; absent: JSON"),
    table("charge", schema::kCharge, "which answers are charged; absent: all"),
    key("messages", Kind::Rate, "", "WebSocket messages of a client, beside its requests; absent: any"),
    whole("messages_burst", 1, kBillion, "", "so many of them at once; absent: the count in messages"),
    choice("messages_over", kMessagesOver, "delay", "one too many waits, or ends the connection with 1008"),
    kSoft,
    kElastic,
    misplaced("priority", "priority in a [[route]], or in one of the rule's tiers"),
    mixed("lease", kLeaseShapes, "",
          "units of a hot key that a weir may take from Redis in advance: \"10%\" of the limit, or a number; "
          "absent: none"),
};
constexpr KeySpec kCostKeys[] = {
    key("header", Kind::Text, "", "name of a header field that says it"),
    key("query", Kind::Text, "", "name of a query parameter that says it"),
    like(pattern::kRooted,
         key("json", Kind::Text, "", "JSON pointer into the body, as \"/amount\", to where it says it")),
    key("response_header", Kind::Text, "", "name of a header field of the answer that says it"),
    like(pattern::kRooted, key("response_json", Kind::Text, "",
                               "pointer into the answer's JSON body, as \"/usage/total_tokens\"")),
    whole("reserve", 1, kMostCost, "", "charged until the answer says it, and where it does not"),
    key("max_body", Kind::Size, "64KiB",
        "of a body that is read, at most 16MiB: a longer request is refused (413), of a longer answer the "
        "reserve stands"),
    whole("default", 1, kMostCost, "1", "of a request that does not say it"),
    whole("scale", 1, kBillion, "", "takes decimal numbers, times so much, rounded up; absent: whole ones"),
};
constexpr KeySpec kChargeKeys[] = {
    {.name = "status",
     .kind = Kind::OneOrMore,
     .about = "any of: \"401\", \"5xx\", \"500-504\"; other answers give back what was held",
     .required = true,
     .pattern = pattern::kStatuses},
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
    needed(mixed("while_load_below", kLoadShapes, "", "a share of the load from 0.01 to 1, such as 0.7")),
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
    whole("priority", 0, 9, "", "of the tier's requests, whatever their route; one a tier")};
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
constinit const TableSpec kMatch{kMatchKeys}, kRule{kRuleKeys}, kCost{kCostKeys}, kCharge{kChargeKeys},
    kElastic{kElasticKeys}, kTier{kTierKeys}, kOverride{kOverrideKeys};
}  // namespace schema

}  // namespace weir::app
