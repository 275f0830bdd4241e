// Reads the settings that nginx permits in http, server and location blocks. An inner block inherits the
// settings of the outer block.
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
  std::string folder;  // folder of the configuration, where relative names of files start
};

// Returns the absolute name of a file that a directive names.
[[nodiscard]] std::string absolute(const ImportState& state, const std::string& file);

// Returns an address or an address block in weir's notation. Returns an empty text if `text` is neither. As
// in nginx, clears the bits after the block's prefix length: 10.1.2.3/8 becomes 10.0.0.0/8.
[[nodiscard]] std::string block_of_addresses(const std::string& text);

// Reads the settings of one block into `scope`, which already has the inherited settings. As in nginx, the
// first limit_req (or limit_conn, allow, deny, proxy_set_header, add_header) of a block replaces all
// inherited ones of its kind.
class ScopeReader {
 public:
  ScopeReader(Scope& scope, ImportState& state) : scope_(scope), state_(state) {}

  // Reads one directive of the block. Returns false, and changes nothing, if this class does not read
  // directives of that name.
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
