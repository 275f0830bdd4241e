// The commands that ask a running weir about limits, by its admin listener. Each returns the exit code of the
// process: 0 done, 1 it could not be asked, 2 the question is wrong.
#pragma once

#include "weir/config/settings.hpp"

#include <optional>
#include <string>
#include <vector>

namespace weir::app {

// Where the listener is, and its token; empty: none.
struct AdminAccess {
  base::Endpoint address;
  std::string token;
};

struct ExplainOptions {
  std::vector<std::string>
      request;  // METHOD, GET where there is none, and "http://host/path?query" or "/path"
  std::vector<std::string> headers;  // "Name: value"
  std::string ip;                    // empty: 127.0.0.1
  std::string body;
  bool json = false;  // the answer as it is, for machines
};
int run_explain(const AdminAccess& access, const ExplainOptions& options);

struct KeysOptions {
  std::string rule;
  std::vector<std::string> key;
  bool reset = false;
  bool json = false;  // likewise
};
int run_keys(const AdminAccess& access, const KeysOptions& options);

}  // namespace weir::app
