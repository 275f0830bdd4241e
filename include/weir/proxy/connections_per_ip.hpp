// Counts and bounds the connections of each client address, over all workers together.
//
// server::Program owns the object. All functions may be called by any thread. Opening and closing a
// connection lock one mutex, but only if `max_connections_per_ip` is set. The counts are in a tree instead of
// a hash table, so that no client can provoke hash collisions. The tree never has more entries than there are
// connections.
#pragma once

#include "weir/base/ip_address.hpp"

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

namespace weir::proxy {

class ConnectionsPerIp {
  using Counts = std::map<base::IpAddress, std::uint64_t>;

 public:
  // `most`: how many connections one address may have; 0: no bound.
  explicit ConnectionsPerIp(std::uint64_t most) noexcept : most_(most) {}
  [[nodiscard]] bool bounded() const noexcept { return most_.load(std::memory_order_relaxed) != 0; }
  // Sets the bound after a reload. It applies to new connections. Connections that were opened while there
  // was no bound remain uncounted.
  void set_most(std::uint64_t most) noexcept { most_.store(most, std::memory_order_relaxed); }

  // One counted connection. The destructor decreases the count.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept
        : connections_per_ip_(std::exchange(other.connections_per_ip_, nullptr)), at_(other.at_) {}
    Slot& operator=(Slot&& other) noexcept {
      std::swap(connections_per_ip_, other.connections_per_ip_);
      std::swap(at_, other.at_);
      return *this;
    }
    ~Slot() {
      if (connections_per_ip_ != nullptr) connections_per_ip_->leave(at_);
    }
    [[nodiscard]] explicit operator bool() const noexcept { return connections_per_ip_ != nullptr; }

   private:
    friend class ConnectionsPerIp;
    Slot(ConnectionsPerIp& connections_per_ip, Counts::iterator at) noexcept
        : connections_per_ip_(&connections_per_ip), at_(at) {}
    ConnectionsPerIp* connections_per_ip_ = nullptr;
    Counts::iterator at_{};
  };

  // Counts one connection of the address. Returns an empty slot if the address has reached the bound. If
  // memory runs out, throws std::bad_alloc and counts nothing.
  [[nodiscard]] Slot enter(const base::IpAddress& address) {
    const std::lock_guard lock(mutex_);
    const auto at = counts_.try_emplace(address, 0).first;
    if (at->second >= most_.load(std::memory_order_relaxed)) {
      if (at->second == 0) counts_.erase(at);
      return {};
    }
    ++at->second;
    return {*this, at};
  }

 private:
  void leave(Counts::iterator at) noexcept {
    const std::lock_guard lock(mutex_);
    if (--at->second == 0) counts_.erase(at);
  }

  std::atomic<std::uint64_t> most_;
  std::mutex mutex_;
  Counts counts_;
};

}  // namespace weir::proxy
