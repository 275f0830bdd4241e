// The sections of a configuration, each read by one function. Mistakes go to the reader's list; what comes
// back is meaningful only when that list stays empty.
#pragma once

#include "config/read/keys_file.hpp"
#include "config/read/table_reader.hpp"

#include "weir/base/result.hpp"
#include "weir/config/settings.hpp"
#include "weir/config/settings_needs.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace weir::app {

// An address that the configuration takes to listen on.
struct Taken {
  base::Endpoint address;
  int line;
};

// What sections tell each other beside the settings themselves.
struct Reading {
  std::string file;                             // as messages name it
  std::filesystem::path folder;                 // relative paths start here
  std::map<std::string, GivenTier> tiers;       // that the keys file gives to somebody
  policy::Store store = policy::Store::Memory;  // of rules that say nothing
  bool store_is_said = false;                   // [state] has store
  bool certificates = false;                    // a listener has client_ca, rightly or not
  bool tokens = false;                          // [client] has jwt, rightly or not
  bool countries = false;                       // [client] has geo, likewise
  policy::TierPriorities tier_priorities{};     // that rules give to their tiers
  std::vector<Taken> taken{};                   // by the listeners read so far
  // Where each stands that messages speak of later, by what they call it: `rule "login"`, `[client]`.
  mutable std::map<std::string, int> lines{};
  mutable std::vector<std::string>
      files{};  // named so far, and the configuration's own: resolve() notes them
};

[[nodiscard]] proxy::ServerSettings read_server(const TableReader& table);
[[nodiscard]] std::vector<net::ListenerSettings> read_listeners(const TableReader& root, Reading& reading);
[[nodiscard]] AdminSettings read_admin(const TableReader& root, Reading& reading);
[[nodiscard]] LogSettings read_log(const TableReader& table, const Reading& reading);
[[nodiscard]] policy::ClientSettings read_client(const TableReader& table, Reading& reading);
[[nodiscard]] StateSettings read_state(const TableReader& table, Reading& reading);
[[nodiscard]] redis::RedisSettings read_redis(const TableReader& table, const Reading& reading);
[[nodiscard]] std::vector<upstream::UpstreamSettings> read_upstreams(const TableReader& root,
                                                                     const Reading& reading);
[[nodiscard]] std::vector<policy::Route> read_routes(const TableReader& root,
                                                     const std::vector<upstream::UpstreamSettings>& upstreams,
                                                     const Reading& reading);
[[nodiscard]] std::vector<policy::Rule> read_rules(const TableReader& root, const Settings& settings,
                                                   Reading& reading);

[[nodiscard]] std::vector<admin::AlertSettings> read_alerts(const TableReader& root, const Settings& settings,
                                                            const Reading& reading);

// `charge`, and a `cost` that is a table with response_header, response_json or reserve: what answers settle.
void read_charge(const TableReader& rule, policy::Rule& into);
[[nodiscard]] bool is_settled_cost(const TableReader& cost);
void read_settled_cost(const TableReader& cost, policy::Rule& into);
// Notes what cannot be settled: what queues, what holds, what is in Redis.
void check_settlement(const TableReader& rule, const policy::Rule& read);
// `lease`. REQUIRES that everything else of the rule has been read. `numbers_are_sound`: without a mistake.
void read_lease(const TableReader& rule, bool numbers_are_sound, policy::Rule& into);

// A list of attributes, under any name.
[[nodiscard]] policy::KeyPattern read_key(const TableReader& table, std::string_view key,
                                          const Reading& reading);
[[nodiscard]] policy::Match read_match(const TableReader& table, const Reading& reading);
// `body_contains` and `max_body` of a match.
void read_body_words(const TableReader& table, policy::Match& match);
// `json` and `max_body` of a cost.
void read_json_cost(const TableReader& table, policy::Rule& rule);
// To how many bytes anything in the rule reads a body; 0: nothing does.
[[nodiscard]] std::uint64_t most_body(const policy::Rule& rule);
// The holders of the keys in a file of their own.
[[nodiscard]] policy::KeyRing read_key_ring(const TableReader& client, const std::string& file,
                                            Reading& reading);

// What is allowed and probably not meant.
[[nodiscard]] std::vector<Warning> find_doubts(const Settings& settings, const Reading& reading);

// The path as written, from the folder of the configuration where it is relative.
[[nodiscard]] std::string resolve(const Reading& reading, const std::string& path);

// What the file holds, or the system's reason why it cannot be read.
[[nodiscard]] base::Result<std::string> read_file(const std::string& path);
[[nodiscard]] bool holds_something(const std::string& file);
// The path of a file that the key names, which has to be there and hold something; empty without the key.
// `kind`: what it is expected to be, as "PEM".
[[nodiscard]] std::string readable_file(const TableReader& table, std::string_view key,
                                        const Reading& reading, std::string_view kind = "PEM");

// A name that may stand in a header, a log line and a label: 1 to 128 printable ASCII characters but " and \.
[[nodiscard]] bool is_plain_name(std::string_view name) noexcept;
// A token of RFC 9110 §5.6.2: field names and methods.
[[nodiscard]] bool is_token(std::string_view text) noexcept;

// Returns what is wrong with the port of "host:port", such as "the port 99999 is above 65535; ". Empty where
// the port is good or absent.
[[nodiscard]] std::string about_port(std::string_view authority);

// What is wrong with what base::Cidr::parse() refused, and what to write. `alternative`: what else would do
// there.
[[nodiscard]] std::string fault_of_block(std::string_view text, std::string_view alternative = {});

// Whether a route or rule with it meets every request.
[[nodiscard]] bool is_everything(const policy::Match& match);

}  // namespace weir::app
