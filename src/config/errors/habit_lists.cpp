#include "config/errors/habit_lists.hpp"

#include <array>

namespace weir::config {

namespace {

constexpr std::string_view kNoZone =
    "leave it out: each rule has its own counters; key = [\"ip\"] selects who is counted separately, and "
    "[state.memory] "
    "max_keys limits their number";
constexpr std::string_view kNoDelay =
    "leave it out: a token_bucket refuses requests above burst; algorithm = \"leaky_bucket\" delays them";
constexpr std::string_view kMatchPath = "write match = { path = {} }";

constexpr std::array kAllHabits{
    Habit{&schema::kRule, "zone", kNoZone},
    Habit{&schema::kRule, "nodelay", kNoDelay},
    Habit{&schema::kRule, "delay", kNoDelay},
    Habit{&schema::kRule, "path", kMatchPath},
    Habit{&schema::kRule, "host", "write match = { host = {} }"},
    Habit{&schema::kRule, "method", "write match = { methods = [{}] }"},
    Habit{&schema::kRule, "methods", "write match = { methods = {} }"},
    Habit{&schema::kRule, "headers", "write match = { headers = {} }"},
    Habit{&schema::kRule, "tier", "write match = { tier = {} }"},
    Habit{&schema::kRule, "ip", "write match = { ip = {} }"},
    Habit{&schema::kRule, "by", "write key = [\"ip\"]"},
    Habit{&schema::kRule, "limit_by", "write key = [\"ip\"]"},
    Habit{&schema::kRule, "key_type", "write key = [\"ip\"]"},
    Habit{&schema::kRule, "source_criterion", "write key = [\"ip\"]"},
    Habit{&schema::kRule, "policy", "write store = \"memory\" or store = \"redis\""},
    Habit{&schema::kRule, "dry_run", "write mode = \"shadow\""},
    Habit{&schema::kRule, "shadow", "write mode = \"shadow\""},
    Habit{&schema::kRule, "status_code", "write status = {}"},
    Habit{&schema::kRule, "code", "write status = {}"},
    Habit{&schema::kRule, "rejected_code", "write status = {}"},
    Habit{&schema::kRule, "message", "write body = {}"},
    Habit{&schema::kRule, "rejected_msg", "write body = {}"},
    Habit{&schema::kRule, "fail_open", "write on_store_failure = \"open\""},
    Habit{&schema::kRule, "allow_degradation", "write on_store_failure = \"open\""},
    Habit{&schema::kRoute, "path", kMatchPath},
    Habit{&schema::kRoute, "prefix", "write match = { path = \"/prefix/*\" }"},
    Habit{&schema::kRoute, "location", kMatchPath},
    Habit{&schema::kRoute, "host", "write match = { host = {} }"},
    Habit{&schema::kRoute, "method", "write match = { methods = [{}] }"},
    Habit{&schema::kRoute, "methods", "write match = { methods = {} }"},
    Habit{&schema::kRoute, "headers", "write match = { headers = {} }"},
    Habit{&schema::kRoute, "proxy_pass",
          "write upstream = \"NAME\", and the servers in an [[upstream]] of that name"},
    Habit{&schema::kRoute, "backend", "write upstream = {}"},
    Habit{&schema::kRoute, "service", "write upstream = {}"},
    Habit{&schema::kRoute, "status", "write respond = { status = {} }"},
    Habit{&schema::kRoute, "return", "write respond = { status = {} }"},
    Habit{&schema::kRoute, "limit", "write it in a [[rule]], with match = { path = \"/…\" } for this route"},
    Habit{&schema::kListener, "listen", "write address = \"0.0.0.0:8080\""},
    Habit{&schema::kListener, "bind", "write address = \"0.0.0.0:8080\""},
    Habit{&schema::kListener, "port", "write address = \"0.0.0.0:8080\""},
    Habit{&schema::kListener, "cert",
          "write tls = { certificates = [{ cert = \"edge.crt\", key = \"edge.key\" }] }"},
    Habit{&schema::kListener, "ssl",
          "write tls = { certificates = [{ cert = \"edge.crt\", key = \"edge.key\" }] }"},
    Habit{&schema::kUpstream, "server", "write servers = [{}]"},
    Habit{&schema::kUpstream, "address", "write servers = [{}]"},
    Habit{&schema::kUpstream, "url", "write servers = [{}]"},
    Habit{&schema::kUpstream, "backends", "write servers = [{}]"},
    Habit{&schema::kUpstream, "timeout", "write timeouts = { response = {} }"},
    Habit{&schema::kUpstream, "health_check", "write health = { path = \"/healthz\" }"},
    Habit{&schema::kUpstream, "healthcheck", "write health = { path = \"/healthz\" }"},
    Habit{&schema::kUpstream, "retries", "write retry = { attempts = {} }"},
    Habit{&schema::kUpstream, "keepalive", "write max_idle = {}"},
    Habit{&schema::kServer, "listen", "write it as address in a [[listener]]"},
    Habit{&schema::kServer, "worker_processes", "write workers = {}"},
    Habit{&schema::kServer, "threads", "write workers = {}"},
    Habit{&schema::kServer, "client_max_body_size", "write max_body = {}"},
    Habit{&schema::kLog, "access_log", "write access = {}"},
    Habit{&schema::kLog, "file", "write access = {}"},
    Habit{&schema::kLog, "path", "write access = {}"},
    Habit{&schema::kRoot, "servers", "write [[upstream]] with name and servers"},
    Habit{&schema::kRoot, "backend", "write [[upstream]] with name and servers"},
    Habit{&schema::kRoot, "location", "write [[route]] with match = { path = \"/…\" }"},
    Habit{&schema::kRoot, "limit", "write [[rule]] with name and limit"},
    Habit{&schema::kRoot, "rate_limit", "write [[rule]] with name and limit"},
    Habit{&schema::kRoot, "ratelimit", "write [[rule]] with name and limit"},
    Habit{&schema::kRoot, "limits", "write [[rule]] with name and limit"},
    Habit{&schema::kRoot, "redis", "write [state] redis = { url = \"redis://…\" }"},
};

constexpr std::array kAllTables{
    TableFor{"api_key", "api_key = { header = {} }"},
    TableFor{"user", "user = { header = {} }"},
    TableFor{"org", "org = { header = {} }"},
    TableFor{"service", "service = { header = {} }"},
    TableFor{"device", "device = { header = {} }"},
    TableFor{"health", "health = { path = {} }"},
    TableFor{"match", "match = { path = {} }"},
    TableFor{"not", "not = { path = {} }"},
    TableFor{"redis", "redis = { url = {} }"},
    TableFor{"respond", "respond = { body = {} }"},
    TableFor{"retry", "retry = { attempts = {} }"},
    TableFor{"eject", "eject = { failures = {} }"},
    TableFor{"timeouts", "timeouts = { response = {} }"},
    TableFor{"charge", "charge = { status = {} }"},
    TableFor{"tls", "tls = { certificates = [{ cert = \"edge.crt\", key = \"edge.key\" }] }"},
    TableFor{"certificates", "certificates = [{ cert = \"edge.crt\", key = \"edge.key\" }]"},
};

constexpr std::array kAllWords{
    Word{"level", "warning", "warn"},
    Word{"level", "notice", "info"},
    Word{"level", "err", "error"},
    Word{"level", "verbose", "debug"},
    Word{"level", "critical", "error"},
    Word{"level", "crit", "error"},
    Word{"level", "fatal", "error"},
    Word{"level", "none", "off"},
    Word{"algorithm", "sliding", "sliding_window"},
    Word{"algorithm", "fixed", "fixed_window"},
    Word{"algorithm", "leaky", "leaky_bucket"},
    Word{"algorithm", "bucket", "token_bucket"},
    Word{"algorithm", "token", "token_bucket"},
    Word{"algorithm", "rolling_window", "sliding_window"},
    Word{"algorithm", "moving_window", "sliding_window"},
    Word{"algorithm", "max_connections", "concurrency"},
    Word{"algorithm", "in_flight", "concurrency"},
    Word{"balance", "least_conn", "least_in_flight"},
    Word{"balance", "leastconn", "least_in_flight"},
    Word{"balance", "least_request", "least_in_flight"},
    Word{"balance", "random", "random_two"},
    Word{"balance", "ip_hash", "hash"},
    Word{"balance", "source", "hash"},
    Word{"mode", "dry_run", "shadow"},
    Word{"mode", "log", "shadow"},
    Word{"mode", "monitor", "shadow"},
    Word{"on_store_failure", "allow", "open"},
    Word{"on_store_failure", "deny", "closed"},
    Word{"on_missing", "allow", "skip"},
    Word{"on_missing", "deny", "reject"},
    Word{"unknown_keys", "allow", "accept"},
    Word{"unknown_keys", "deny", "reject"},
    Word{"store", "local", "memory"},
};

}  // namespace

constinit const std::span<const Habit> kHabits = kAllHabits;
constinit const std::span<const TableFor> kTables = kAllTables;
constinit const std::span<const Word> kWords = kAllWords;

}  // namespace weir::config
