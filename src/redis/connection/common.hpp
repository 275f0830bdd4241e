// What the sessions of a cluster have in common. All of it belongs to the cluster, which outlives them.
#pragma once

#include "weir/redis/store.hpp"

namespace weir::redis {

class DenyCache;
class Holding;

struct Store::Common {
  Cluster& cluster;
  StoreStats& stats;
  DenyCache& denied;
  Holding& holding;
};

}  // namespace weir::redis
