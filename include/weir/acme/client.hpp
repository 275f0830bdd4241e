// Speaks ACME (RFC 8555) with one authority. Blocks, so only the thread of acme::Manager uses it.
#pragma once

#include "weir/acme/jws.hpp"
#include "weir/acme/messages.hpp"
#include "weir/acme/settings.hpp"
#include "weir/base/result.hpp"
#include "weir/fetch/fetch.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace weir::acme {

class Client {
 public:
  static constexpr std::chrono::minutes kLongestOrder{5};  // from the constructor to the last request

  // `settings` and `account` must outlive this object. If `stop` is requested, requests end early with an
  // error.
  Client(const Settings& settings, const Key& account, std::stop_token stop);

  // A challenge that weir must answer to prove that it controls the name.
  struct ToAnswer {
    std::string name;
    std::string token;
  };
  // A function that publishes the challenges of all names, so that weir answers requests for them. order()
  // calls this function before it tells the authority to check the challenges.
  using Show = std::function<base::Result<void>(const std::vector<ToAnswer>&)>;

  // Orders a certificate for the names and returns the certificate chain as PEM. `replaces`: the ID of the
  // certificate that the new one renews (CertificateInfo::ari_id); may be empty. `key`: the private key for
  // the new certificate.
  [[nodiscard]] base::Result<std::string> order(const Names& names, const std::string& replaces,
                                                const Key& key, const Show& show);

  // Returns how long the authority wants weir to wait before the next order, if its last error said so.
  [[nodiscard]] std::optional<std::chrono::seconds> wanted_pause() const noexcept { return wanted_pause_; }

 private:
  struct Placed {
    std::string url;
    Order order;
  };
  [[nodiscard]] base::Result<void> begin();
  [[nodiscard]] base::Result<fetch::Response> send(const fetch::Request& request);
  [[nodiscard]] base::Result<void> renew_nonce();
  [[nodiscard]] base::Result<fetch::Response> post(const std::string& url, std::string_view payload);
  [[nodiscard]] base::Result<Placed> place(const Names& names, const std::string& replaces);
  [[nodiscard]] base::Result<void> prove(const Names& names, const std::vector<std::string>& authorizations,
                                         const Show& show);
  [[nodiscard]] base::Result<void> await_proof(const std::string& authorization);
  [[nodiscard]] base::Result<Order> await(Placed placed, Status passing);
  [[nodiscard]] base::Result<void> pause(const fetch::Response& response, unsigned round);

  const Settings& settings_;
  const Key& account_;
  const std::stop_token stop_;
  const std::chrono::steady_clock::time_point latest_;
  Directory directory_;
  std::string nonce_;
  std::string account_url_;
  Problem problem_;  // the problem in the last answer, if that answer was an error
  std::optional<std::chrono::seconds> wanted_pause_;
};

struct AskedWindow {
  std::optional<RenewalWindow> window{};  // nullopt: the authority suggests none, or an error occurred
  std::optional<std::chrono::seconds> retry_after{};  // the pause that the authority asked for, if any
  std::string fault{};                                // the error, if one occurred
};
// Asks the authority when to renew a certificate (ARI, RFC 9773 §4).
[[nodiscard]] AskedWindow ask_window(const Settings& settings, const std::string& ari_id,
                                     const std::stop_token& stop);

// Waits for `time`, but at most until `stop` is requested. Returns false if `stop` is requested.
bool sleep_for(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace weir::acme
