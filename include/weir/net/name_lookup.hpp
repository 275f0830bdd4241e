// Looks up the addresses of one name while its owner goes on. The system's resolver blocks, and nobody can
// cancel it; each look-up is on a thread of the C library's own (getaddrinfo_a), so a slow name delays no
// other.
//
// Belongs to one thread, which asks from time to time whether the look-up has ended.
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

  // Begins a look-up, unless one is under way.
  void begin(const base::Endpoint& address);
  // Returns false once the look-up has ended, and takes its answer in.
  [[nodiscard]] bool is_under_way();
  // Why the look-up that ended last found nothing; empty: it found addresses.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }
  // The addresses of the last look-up that found any.
  [[nodiscard]] const std::vector<RawEndpoint>& known() const noexcept { return known_; }

 private:
  struct Query;
  void take(Query& query, int outcome);

  std::unique_ptr<Query> query_;  // null: none is under way
  std::string fault_;
  std::vector<RawEndpoint> known_;
};

}  // namespace weir::net
