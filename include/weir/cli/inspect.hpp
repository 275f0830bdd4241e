// Commands that ask a running weir about limits through its admin listener (`weir explain`, `weir keys`).
// Each returns the exit code of the process: 0 for success, 1 without a reply, 2 for a wrong question.
#pragma once

#include "weir/config/settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace weir::cli {

// The address of the admin listener, and the token for it. The token is empty if none is needed.
struct AdminAccess {
  base::Endpoint address;
  std::string token;
};

struct ExplainOptions {
  std::vector<std::string> request;  // METHOD (may be omitted: GET), and "http://host/path?query" or "/path"
  std::vector<std::string> headers;  // lines such as "Name: value"
  std::string ip;                    // address of the client; empty: 127.0.0.1
  std::string body;
  bool json = false;  // prints the reply's JSON unchanged
};
int run_explain(const AdminAccess& access, const ExplainOptions& options);

struct KeysOptions {
  std::string rule;
  std::vector<std::string> key;
  bool reset = false;
  bool json = false;  // prints the reply's JSON unchanged
};
int run_keys(const AdminAccess& access, const KeysOptions& options);

}  // namespace weir::cli
