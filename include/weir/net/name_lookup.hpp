// Looks up the addresses of one name without blocking the caller. The system's resolver blocks and cannot be
// cancelled. So each look-up runs on a thread of the C library (getaddrinfo_a), and a slow name does not
// delay the look-ups of other names.
//
// Belongs to one thread. That thread must call is_under_way() until the look-up has ended.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/net/listener.hpp"

#include <memory>
#include <string>
#include <vector>

namespace weir::net {

class NameLookup {
 public:
  NameLookup() noexcept;
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // Starts a look-up, unless one is running.
  void begin(const base::Endpoint& address);
  // Returns true while a look-up is running. The first call after its end stores the result, for fault() and
  // known().
  [[nodiscard]] bool is_under_way();
  // Returns why the last look-up found nothing; empty if it found addresses.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  // Returns the addresses from the last successful look-up.
  [[nodiscard]] const std::vector<RawEndpoint>& known() const noexcept { return known_; }

 private:
  struct Query;
  void take(Query& query, int outcome);

  std::unique_ptr<Query> query_;  // null: no look-up is running
  std::string fault_;
  std::vector<RawEndpoint> known_;
};

}  // namespace weir::net
