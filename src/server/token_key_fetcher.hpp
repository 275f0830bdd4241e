// Fetches the public keys of token issuers in the background.
//
// Each URL has a thread of its own, so that an issuer that does not answer delays no fetch from another one.
// Program owns the object, which belongs to the main thread.
#pragma once

#include "weir/admin/figures.hpp"
#include "weir/log/log.hpp"
#include "weir/policy/identity.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weir::server {

class TokenKeyFetcher {
 public:
  // `on_fetched`: called after each fetch, on the thread of the URL. `log` must outlive this object.
  TokenKeyFetcher(log::Log& log, std::function<void()> on_fetched);
  ~TokenKeyFetcher();  // cancels fetches that run, and joins the threads
  TokenKeyFetcher(const TokenKeyFetcher&) = delete;
  TokenKeyFetcher& operator=(const TokenKeyFetcher&) = delete;

  // Lets the settings of a reload use the keys that were fetched before, for URLs that stay the same. Must be
  // called before workers get the settings.
  void share_keys(policy::ClientSettings& client) const;
  // From now on, fetches only the URLs of these settings. Throws std::system_error if no thread can be
  // started.
  void watch(const policy::ClientSettings& client);

  // Returns the state of each URL, in the order of the URLs.
  [[nodiscard]] std::vector<admin::TokenKeyFigures> figures() const;

 private:
  class Job;

  log::Log& log_;
  const std::function<void()> on_fetched_;
  std::map<std::string, std::unique_ptr<Job>> jobs_;  // the key is the URL
};

}  // namespace weir::server
