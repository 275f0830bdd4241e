// The schema of [[alert]].
#include "config/schema/schema_keys.hpp"

namespace weir::app {

namespace {

constexpr Choice kFailingStores[] = {{"redis"}};
constexpr KeySpec kAlertKeys[] = {
    like(pattern::kName,
         key("name", Kind::Text, "", "what messages and metrics call it; default what it watches")),
    key("rule", Kind::Text, "", "name of a rule whose refusals are watched; those of a shadow rule as well"),
    key("refused_above", Kind::Rate, "", "of rule: more refusals within any such period, as \"100/min\""),
    key("upstream", Kind::Text, "",
        "name of an upstream whose failures are watched: servers that cannot be reached or break off, and "
        "answers of 5xx"),
    choice("store", kFailingStores, "", "watches calls to Redis that get no answer of use"),
    key("failures_above", Kind::Rate, "", "of upstream or store: more failures within any such period"),
    key("for", Kind::Duration, "0s", "how long it has to be above, and to be below again"),
    key("repeat", Kind::Duration, "4h", "how often it is said again while it lasts; 0s: never"),
    like(pattern::kWebhook,
         required("webhook", Kind::Text, "http:// or https:// address that JSON is posted to")),
    key("authorization", Kind::Text, "", "the Authorization field of the posts, as \"Bearer …\""),
    key("ca", Kind::Text, "",
        "PEM file: who signs the certificate of https://; absent: whom the system trusts"),
    key("posts", Kind::Rate, "6/min", "how many attempts to post may be made, of this alert"),
    whole("attempts", 1, 100, "5",
          "after which a message counts as failed, and is tried on; pauses double from 1s to 5min"),
    key("timeout", Kind::Duration, "5s", "of an attempt"),
};

}  // namespace

namespace schema {
constinit const TableSpec kAlert{kAlertKeys};
}  // namespace schema

}  // namespace weir::app
