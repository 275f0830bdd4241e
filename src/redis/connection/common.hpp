// The objects that all sessions of a cluster share. The cluster owns these objects and outlives the sessions.
#pragma once

#include "weir/redis/store.hpp"

namespace weir::redis {

class DenyCache;
class PermitRenewer;

struct Store::Common {
  Cluster& cluster;
  StoreStats& stats;
  DenyCache& denied;
  PermitRenewer& permit_renewer;
};

}  // namespace weir::redis
