// Assigns numbers to rules and clients, so that the cases of a million requests need not store names. Owned
// by Cases.
#pragma once

#include "weir/base/siphash.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <boost/unordered/unordered_flat_map.hpp>

namespace weir::replay {

using NameId = std::uint16_t;
using ClientId = std::uint32_t;

struct ClientName {
  std::string text;
  std::string digest;
};

class Names {
 public:
  // Returns the number of a rule. The replayed rules have the lowest numbers, in their order. After
  // kMostRules names, all further names share the highest number.
  NameId rule(std::string_view name) {
    for (std::size_t i = 0; i < rules.size(); ++i)
      if (rules[i] == name) return static_cast<NameId>(i);
    if (rules.size() == kMostRules) return static_cast<NameId>(kMostRules - 1);
    rules.emplace_back(name);
    return static_cast<NameId>(rules.size() - 1);
  }

  // Returns the number of a client. For a client without a number, calls `make`, which must return the
  // client's name.
  template <class Make>
  ClientId client(const base::Digest128& key, Make make) {
    const auto [found, fresh] = ids_.try_emplace(key, static_cast<ClientId>(clients.size()));
    if (fresh) clients.push_back(make());
    return found->second;
  }

  // Calls `visit` with the key and the name of each client.
  template <class Visit>
  void for_each_client(Visit visit) const {
    for (const auto& [key, id] : ids_) visit(key, clients[id]);
  }

  std::vector<std::string> rules;
  std::vector<ClientName> clients;

 private:
  static constexpr std::size_t kMostRules = 4096;
  struct Low {
    std::size_t operator()(const base::Digest128& key) const noexcept { return key.lo ^ key.hi; }
  };
  boost::unordered_flat_map<base::Digest128, ClientId, Low> ids_;
};

}  // namespace weir::replay
