// The public keys of token issuers that weir fetches from a URL, and the requests that wait for them.
//
// Pure: the caller fetches the keys and knows the time.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// Where and how often weir fetches a JWK set, and the bounds of a fetch.
struct KeyFetchSettings {
  std::string url;
  base::Duration refresh{0};  // time from a fetch to the next one
  // least time between two fetches; after this time, a failed fetch is repeated
  base::Duration cooldown{0};
  base::Duration wait{0};         // longest time that a request waits for the key of its token
  base::Duration timeout{0};      // longest time of a fetch
  std::size_t max_size = 0;       // most bytes of the set
  std::uint32_t max_waiting = 0;  // most requests that wait at the same time
  std::string ca_file{};          // PEM file of certificate authorities; empty: the system's authorities
  bool allow_http = false;        // true: the URL may begin with "http://"

  bool operator==(const KeyFetchSettings&) const = default;
};

struct TokenKey;

// The keys at one URL. Workers read them, and one thread of the server replaces them. All functions are
// thread-safe. Issuers with the same URL share the object, and so do configurations before and after a
// reload.
class FetchedKeys {
 public:
  // Fetches are numbered from 1, in the order in which they begin.
  using FetchNumber = std::uint64_t;

  // Returns the keys of the last successful fetch; null if no fetch has succeeded.
  [[nodiscard]] std::shared_ptr<const std::vector<TokenKey>> keys() const;

  // Asks for a fetch that begins after this call, and returns its number.
  FetchNumber want();
  // Returns true if the fetch with this number, or a later one, has succeeded.
  [[nodiscard]] bool has_fetched(FetchNumber number) const;
  // Returns true if the most recent fetch that ended was a failure.
  [[nodiscard]] bool is_failing() const;

  // Counts a request that begins to wait. Returns false if `most` requests wait already. Each call that
  // returns true needs a call of leave().
  [[nodiscard]] bool enter(std::uint32_t most) noexcept;
  void leave() noexcept { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t waiting() const noexcept { return waiting_.load(std::memory_order_relaxed); }

  // The functions below are for the thread that fetches. on_want() sets a function for want() to call, on the
  // thread of the worker that calls want(). If `called` is empty, want() calls nothing.
  void on_want(std::function<void()> called);
  // Returns true if a request wants a fetch that has not begun.
  [[nodiscard]] bool is_wanted() const;
  void begin_fetch();
  // Ends the fetch. Replaces the keys by those of the JWK set, and returns their number. If the set has no
  // usable key, keeps the old keys and returns the reason; the fetch has then failed.
  base::Result<std::size_t> store(std::string_view jwk_set);
  // Ends the fetch as failed, because no JWK set was received. Keeps the old keys.
  void fail();

 private:
  mutable std::mutex mutex_;  // guards the members from here to on_want_
  std::shared_ptr<const std::vector<TokenKey>> keys_;
  FetchNumber begun_ = 0;      // the number of the last fetch that began
  FetchNumber succeeded_ = 0;  // the number of the last fetch that succeeded; 0: none
  FetchNumber wanted_ = 0;
  bool failing_ = false;
  std::function<void()> on_want_;
  std::atomic<std::uint32_t> waiting_{0};
};

}  // namespace weir::policy
