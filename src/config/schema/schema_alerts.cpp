// The schema of [[alert]].
#include "config/schema/schema_keys.hpp"

namespace weir::config {

namespace {

constexpr Choice kFailingStores[] = {{"redis"}};
constexpr KeySpec kAlertKeys[] = {
    like(pattern::kName,
         key("name", Kind::Text, "", "name in messages and metrics; default: the name of what is watched")),
    key("rule", Kind::Text, "", "name of the rule whose refusals are watched; a shadow rule will do"),
    key("refused_above", Kind::Rate, "",
        "rule: fires at more refusals in any such period, such as \"100/min\""),
    key("key_refused_above", Kind::Rate, "",
        "rule, in place of refused_above: fires for each client of the rule that is refused more often in "
        "any such period"),
    whole("max_clients", 1, 100, "10",
          "key_refused_above: most clients for which the alert fires at once; weir counts those beyond"),
    key("upstream", Kind::Text, "",
        "name of the upstream whose failures are watched: failed connects, broken answers, and answers of "
        "5xx"),
    choice("store", kFailingStores, "", "watches failed calls to Redis"),
    key("failures_above", Kind::Rate, "", "upstream, store: fires at more failures in any such period"),
    key("for", Kind::Duration, "0s",
        "how long the rate has to be above before the alert fires, and below before it ends"),
    key("repeat", Kind::Duration, "4h", "how often the message is repeated while the alert lasts; 0s: never"),
    like(pattern::kWebhook,
         required("webhook", Kind::Text, "http:// or https:// address to which weir posts JSON")),
    key("authorization", Kind::Text, "", "Authorization field of the posts, such as \"Bearer …\""),
    key("ca", Kind::Text, "",
        "PEM file: the authority of the webhook's certificate; absent: the system's authorities"),
    key("posts", Kind::Rate, "6/min", "highest rate of posts of this alert"),
    whole("attempts", 1, 100, "5",
          "attempts after which a message counts as failed; weir tries on, with pauses that double from 1s "
          "to 5min"),
    key("timeout", Kind::Duration, "5s", "time for one attempt"),
};

}  // namespace

namespace schema {
constinit const TableSpec kAlert{kAlertKeys};
}  // namespace schema

}  // namespace weir::config
