// Functions that each read one section of a configuration. The functions add mistakes to the list of their
// TableReader. If the list has mistakes at the end, the results of the functions are meaningless.
#pragma once

#include "config/read/client/keys_file.hpp"
#include "config/read/table_reader.hpp"

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/config/settings_needs.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weir::config {

// The address of a listener, and the line of the file that declares the listener.
struct DeclaredListener {
  base::Endpoint address;
  int line;
};

// Values that the functions below share, in addition to Settings.
struct ReadContext {
  std::string file;                             // the configuration file's name in messages
  std::filesystem::path folder;                 // the folder of the file, in which relative paths start
  std::map<std::string, AssignedTier> tiers;    // tiers that occur in the keys file
  std::string keys_file{};                      // path of the keys file; empty: there is none
  policy::Store store = policy::Store::Memory;  // the store of rules without the key `store`
  bool store_is_set = false;                    // true: [state] has the key `store`
  bool certificates = false;                    // true: a listener has the key client_ca, even with a mistake
  bool cors = false;                            // true: the file has [cors], even with a mistake
  bool tracing = false;                         // true: the file has [tracing], even with a mistake
  bool tokens = false;                          // true: [client] has the key jwt, even with a mistake
  bool tier_claim = false;                      // true: [client] takes the tier from a claim
  bool geo = false;                             // true: [client] has the key geo, even with a mistake
  policy::TierPriorities tier_priorities{};     // priorities that rules have set for tiers
  bool acme_is_set = false;                     // true: the file has [acme], even with a mistake
  std::string acme_folder{};                    // acme.folder; empty if there is none
  std::map<std::string, acme::Names>
      acme_names{};                       // the names of each certificate to order; the key is the first name
  std::vector<std::string> listeners{};   // names of the listeners read so far
  bool proxies = false;                   // true: a listener forwards requests
  bool answers = false;                   // true: a listener answers questions
  bool in_rules = false;                  // true: all routes were read; weir reads rules
  std::vector<std::string> routes{};      // names of the routes; empty until all routes were read
  std::vector<DeclaredListener> taken{};  // addresses of the listeners read so far
  // Maps the name of a thing in the file, such as `rule "login"` or `[client]`, to its line. Used by later
  // messages.
  mutable std::map<std::string, int> lines{};
  mutable std::vector<std::string> files{};    // the configuration's own file, and the files that it names
  mutable std::vector<WatchedFile> watched{};  // Settings::files without the configuration's own file
};

// Must be called before weir reads a file whose content is part of the configuration. Adds the file to
// ReadContext::watched.
void watch_file(const ReadContext& context, const std::string& file);

[[nodiscard]] proxy::ServerSettings read_server(const TableReader& table);
[[nodiscard]] std::vector<net::ListenerSettings> read_listeners(const TableReader& root,
                                                                ReadContext& context);
// Adds `address` to ReadContext::taken. Reports a mistake if `address` collides with that of an earlier
// listener.
void take_address(const TableReader& table, const base::Endpoint& address, ReadContext& context);
// Reads the keys of a listener that say what it serves. Must be called after `address` and `tls` were read.
void read_ask(const TableReader& table, net::ListenerSettings& listener, ReadContext& context);
// Reads the setting `token` of a listener at this address. Reports a mistake if a header cannot contain the
// token, or if the token is too short for an address that other machines can reach.
[[nodiscard]] std::string read_token(const TableReader& table, const base::Endpoint& address);
// Returns true if only this machine can connect to the address.
[[nodiscard]] bool is_loopback(const base::Endpoint& address);
[[nodiscard]] AdminSettings read_admin(const TableReader& root, ReadContext& context);
[[nodiscard]] LogSettings read_log(const TableReader& table, const ReadContext& context);
[[nodiscard]] policy::ClientSettings read_client(const TableReader& table, ReadContext& context);
// Reads `jwt`. REQUIRES: [client] has it.
[[nodiscard]] std::optional<policy::TokenVerifier> read_tokens(const TableReader& client,
                                                               const ReadContext& context);
[[nodiscard]] StateSettings read_state(const TableReader& table, ReadContext& context);
[[nodiscard]] redis::RedisSettings read_redis(const TableReader& table, const ReadContext& context);
[[nodiscard]] std::vector<upstream::UpstreamSettings> read_upstreams(const TableReader& root,
                                                                     const ReadContext& context);
[[nodiscard]] std::vector<policy::Route> read_routes(const TableReader& root,
                                                     const std::vector<upstream::UpstreamSettings>& upstreams,
                                                     const ReadContext& context);
[[nodiscard]] std::vector<policy::Rule> read_rules(const TableReader& root, const Settings& settings,
                                                   ReadContext& context);
// Reports a mistake if all requests that a rule matches get more than kMaxCharges charges. Also reports a
// mistake if the rules have more different limits than one process can hold. `tables`: the tables of the
// rules, in the same order.
void check_bounds(const std::vector<TableReader>& tables, std::span<policy::Rule> rules);

[[nodiscard]] std::vector<admin::AlertSettings> read_alerts(const TableReader& root, const Settings& settings,
                                                            ReadContext& context);

// Reads [tracing]; nullopt if the file has no such table.
[[nodiscard]] std::optional<log::TracingSettings> read_tracing(const TableReader& root,
                                                               const ReadContext& context);

// Reads [acme]; nullopt if the file has no such table. Must be called before read_listeners().
[[nodiscard]] std::optional<acme::Settings> read_acme(const TableReader& root, ReadContext& context);
// Reads an entry of `certificates` that has the key acme.
[[nodiscard]] net::CertificateFiles read_acme_certificate(const TableReader& table, ReadContext& context);

// Reads [cors]; nullopt if the file has no such table.
[[nodiscard]] std::optional<http::CorsSettings> read_cors(const TableReader& root);

// Reads the keys that say how refusals of the rule look: status, body, content_type, headers and
// retry_after_jitter.
void read_refusal(const TableReader& rule, const proxy::ServerSettings& server, policy::Rule& into);
// Reads `retry_after_jitter` of a rule or of [server], in percent. REQUIRES: the key is present or has a
// default.
[[nodiscard]] unsigned read_jitter(const TableReader& table);
// Returns true if the text can be the value of Content-Type.
[[nodiscard]] bool is_media_type(std::string_view text) noexcept;

// read_charge() reads `charge`. is_settled_cost() returns true if `cost` is a table with response_header,
// response_json, reserve or stream. read_settled_cost() reads such a table.
void read_charge(const TableReader& rule, policy::Rule& into);
[[nodiscard]] bool is_settled_cost(const TableReader& cost);
void read_settled_cost(const TableReader& cost, policy::Rule& into);
// Reads a rule with `bandwidth`, apart from its name.
void read_bandwidth(const TableReader& table, const ReadContext& context, policy::Rule& rule);
// is_cost_in_bytes() returns true if `cost` is a table with `bytes` or `per`. read_cost_in_bytes() reads such
// a table.
[[nodiscard]] bool is_cost_in_bytes(const TableReader& cost);
void read_cost_in_bytes(const TableReader& cost, policy::Rule& into);
// Reads `reserve` of a `cost` table. Reports a mistake if `reserve` is missing.
void read_reserve(const TableReader& cost, policy::Rule& into);
// Reads the setting `key`, whose value contains JSON pointers: "/a|/b", a list, or a table with weights.
// `sample`: a pointer for messages.
[[nodiscard]] std::vector<policy::CostTerm> read_terms(const TableReader& table, std::string_view key,
                                                       std::string_view sample);
// Reports a mistake if the rule's cost depends on the response but its algorithm cannot correct a charge. The
// algorithms leaky_bucket, concurrency and adaptive_concurrency cannot. Also reports a mistake if the rule
// has both charge.grpc_status and a cost that the response reports.
void check_settlement(const TableReader& rule, const policy::Rule& read);
// Reads `penalty`. Must be called after the rule's limiters were read.
void read_penalty(const TableReader& rule, policy::Rule& into);
// Reads `adapt`. Must be called after the rule's limiters, tiers, overrides and cost were read.
// `numbers_are_sound`: false if the numbers of the rule, a tier or an override have a mistake.
void read_adapt(const TableReader& rule, const Settings& settings, bool numbers_are_sound,
                policy::Rule& into);
// Reads `lease`. Must be called after all other keys of the rule were read. `numbers_are_sound`: false if the
// rule's numbers have a mistake.
void read_lease(const TableReader& rule, bool numbers_are_sound, policy::Rule& into);

// Reads a rule's key, which is a list of attributes, from the setting `key`.
[[nodiscard]] policy::KeyPattern read_key(const TableReader& table, std::string_view key,
                                          const ReadContext& context);
// Returns the message about a condition or key part that needs a geographic database although [client] has no
// `geo`. `place`: the attribute, such as the country.
[[nodiscard]] std::string no_geo(policy::Attribute place);
[[nodiscard]] policy::Match read_match(const TableReader& table, const ReadContext& context);
// The meaning of the names in a table of conditions: header fields, query parameters or JSON pointers.
enum class NameKind : std::uint8_t { Field, Parameter, Pointer };
// Reads a table of conditions: name = "text", name = "~regex", or name = true if any value is allowed.
void read_named(const TableReader& table, std::string_view key, NameKind kind,
                std::vector<policy::NamedText>& into);
// Reads the settings `domains` and `descriptor` of a match.
void read_question_conditions(const TableReader& table, const ReadContext& context, policy::Match& match);
// Reports a mistake if a rule that needs a descriptor has `bandwidth` or `messages`. The rule then applies
// to questions only, and questions have no body and no messages.
void check_questions(const TableReader& table, const policy::Rule& rule);
// Reads `overdraft`. With this setting, a question (a request for a decision, from a program that asks weir)
// is charged its whole cost, even if that cost exceeds the rule's limit. Must be called after all other
// settings of the rule were read.
void read_overdraft(const TableReader& table, policy::Rule& rule);
// Reads the settings `body_contains`, `json` and `max_body` of a match.
void read_body_conditions(const TableReader& table, policy::Match& match);
// Reads the setting `max_body` of a rule whose key reads the body. Must be called after the key and the cost
// were read.
void read_body_of_key(const TableReader& table, policy::Rule& rule);
// Reads the rule's limits on messages of WebSockets and gRPC calls. Must be called after the key was read.
void read_messages(const TableReader& table, policy::Rule& rule);
// Reads the settings `json` and `max_body` of a cost. read_cost_body() reads only `max_body`.
void read_json_cost(const TableReader& table, policy::Rule& rule);
void read_cost_body(const TableReader& table, policy::Rule& rule);
// Returns the most bytes of a request body that the rule reads; 0: the rule reads no bodies.
[[nodiscard]] std::uint64_t most_body(const policy::Rule& rule);
// Reads the keys file, which lists API keys.
[[nodiscard]] policy::ApiKeys read_api_keys(const TableReader& client, const std::string& file,
                                            ReadContext& context);

// Returns warnings about settings that are allowed but probably not intended.
[[nodiscard]] std::vector<Warning> find_warnings(const Settings& settings, const ReadContext& context);

// Returns `path`. If the path is relative, puts the configuration's folder before it.
[[nodiscard]] std::string resolve(const ReadContext& context, const std::string& path);

[[nodiscard]] bool holds_something(const std::string& file);
// Returns true if `file`, a path that readable_file() has returned, names a missing or empty file.
// readable_file() has reported that mistake. Returns false for an empty path.
[[nodiscard]] bool is_unreadable(const std::string& file);
// Returns the path of the file that the setting `key` names; empty if the table does not have the setting.
// Reports a mistake if the file is missing or empty. `kind`: the kind of file for the message.
[[nodiscard]] std::string readable_file(const TableReader& table, std::string_view key,
                                        const ReadContext& context, std::string_view kind = "PEM");

// Returns true if the name can appear in a header, a log line and a metric label. The name must have 1 to 128
// printable ASCII characters without " and \.
[[nodiscard]] bool is_plain_name(std::string_view name) noexcept;
// Returns true if the text is a token of RFC 9110 §5.6.2. Names of header fields and methods are tokens.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

// Returns what is wrong with the port in "host:port", such as "the port 99999 is above 65535; ". Returns an
// empty text if the port is valid or absent.
[[nodiscard]] std::string about_port(std::string_view authority);

// Returns a message about a text that base::Cidr::parse() rejected: what is wrong, and what to write.
// `alternative`: another value that the key accepts.
[[nodiscard]] std::string fault_of_block(std::string_view text, std::string_view alternative = {});

// Returns true if every request meets the conditions of the match.
[[nodiscard]] bool is_everything(const policy::Match& match);

}  // namespace weir::config
