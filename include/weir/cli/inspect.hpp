// Commands that ask a running weir through its admin listener (`weir explain`, `weir keys`, `weir
// client-keys`, `weir servers`). Each returns the exit code of the process: 0 for success; 1 if no reply
// arrives, the token is wrong or weir fails (5xx); 2 if the request is invalid.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/policy/api_keys.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::cli {

// The address of the admin listener, and the token for it. The token is empty if no token is needed.
struct AdminAccess {
  base::Endpoint address;
  std::string token;
};

struct ExplainOptions {
  // "GET" or another METHOD (optional), then "http://host/path?query" or "/path"; may be empty for a question
  std::vector<std::string> request;
  std::vector<std::string> headers;  // lines such as "Name: value"
  std::string ip;                    // address of the client; empty: 127.0.0.1
  std::string body;
  // The members from `domain` to `cost` describe a question to weir (weir/ask/question.hpp). They are empty
  // or false for any other request.
  std::string domain;
  std::vector<std::string> descriptor;  // "KEY=VALUE"
  // True: as for a call of serves = "rls", a rule applies only if it names exactly the descriptor's keys.
  bool exact = false;
  std::string cost;   // the cost that the question states; empty: none
  bool json = false;  // true: print the JSON of the reply unchanged
};
int run_explain(const AdminAccess& access, const ExplainOptions& options);

struct KeysOptions {
  std::string rule;
  std::vector<std::string> key;
  bool reset = false;
  bool json = false;  // true: print the JSON of the reply unchanged
};
int run_keys(const AdminAccess& access, const KeysOptions& options);

struct ClientKeysOptions {
  enum class Action : std::uint8_t { List, Set, Remove };
  Action action = Action::List;
  // The id of a known key (ApiKeys::id_of()); or "sha256:" and the 64 digits of the SHA-256 of any key; or
  // "-": read the key from standard input. 64 digits alone could be an API key, so they are rejected.
  std::string key;
  policy::ApiKeyOwnerChange owner;
  bool json = false;  // true: print the JSON of the reply unchanged
};
int run_client_keys(const AdminAccess& access, const ClientKeysOptions& options);

// Options of `weir servers`. Without a change, the command lists all servers.
struct ServersOptions {
  std::string upstream;
  std::string server;
  std::optional<bool> drained{};
  std::optional<unsigned> weight{};
  bool json = false;  // true: print the JSON of the reply unchanged
};
int run_servers(const AdminAccess& access, const ServersOptions& options);

}  // namespace weir::cli
