// Reads the settings that nginx lets http, server and location have, and lets the inner one inherit.
#pragma once

#include "cli/import/read/model.hpp"
#include "cli/import/read/notes.hpp"

#include <set>
#include <string>

namespace weir::cli::nginx {

// The state that all readers of an nginx configuration share.
struct ImportState {
  Configuration& result;
  Notes& notes;
  std::string folder;  // of the configuration: relative names of files start there
};

// Returns the absolute name of a file that the configuration names.
[[nodiscard]] std::string absolute(const ImportState& state, const std::string& file);

// Returns an address or a block as weir writes it; empty if the text is neither. nginx ignores the bits
// behind the length of a block: 10.1.2.3/8 is 10.0.0.0/8.
[[nodiscard]] std::string block_of_addresses(const std::string& text);

// Reads the settings of one block. `scope` holds the inherited ones. As in nginx, the first limit_req (or
// limit_conn, allow, deny, proxy_set_header, add_header) of a block replaces all inherited ones.
class ScopeReader {
 public:
  ScopeReader(Scope& scope, ImportState& state) : scope_(scope), state_(state) {}

  // Returns false if the directive is no such setting.
  bool read(const Directive& directive);

 private:
  bool read_limit(const Directive& directive);
  bool read_access(const Directive& directive);
  bool read_answer(const Directive& directive);
  bool read_guard(const Directive& directive);
  bool read_real_ip(const Directive& directive);
  bool read_tuning(const Directive& directive);
  bool read_retry(const Directive& directive);
  void read_limit_req(const Directive& directive);
  void read_limit_conn(const Directive& directive);
  bool read_header(const Directive& directive);
  void read_set_header(const Directive& directive);

  // Returns true the first time that this block has a directive of this kind.
  bool first(const char* kind) { return own_.insert(kind).second; }

  Scope& scope_;
  ImportState& state_;
  std::set<std::string> own_;
};

}  // namespace weir::cli::nginx
