// Orders and renews the certificates of listeners that have `acme` in their configuration.
//
// server::Program owns the object. One thread checks the folder once a second and orders one certificate at a
// time. The thread ends with the object. The destructor may have to wait until libcurl has looked up a name.
#pragma once

#include "weir/acme/certificate.hpp"
#include "weir/acme/client.hpp"
#include "weir/acme/folder.hpp"
#include "weir/acme/settings.hpp"
#include "weir/net/challenges.hpp"
#include "weir/net/file_stamp.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace weir::acme {

struct Figures {
  std::uint64_t ok = 0;            // orders that brought a certificate
  std::uint64_t failed = 0;        // orders that failed
  std::uint64_t placeholders = 0;  // certificates that are still placeholders
};

class Manager {
 public:
  // The manager's thread calls these functions.
  struct Callbacks {
    std::function<void(const std::string&)> info;     // writes a line to the log
    std::function<void(const std::string&)> warning;  // writes a line to the log
    std::function<void()> changed;                    // called after a certificate's file has changed
  };

  Manager(std::shared_ptr<net::Challenges> challenges, Callbacks callbacks);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Uses these settings from now on; nullopt: orders nothing. If the new settings differ from the present
  // ones, abandons an order in progress. Starts the thread if it is needed and does not run yet.
  void configure(std::optional<Settings> settings, std::vector<Names> certificates);

  // May be called by any thread.
  [[nodiscard]] Figures figures() const noexcept;

 private:
  struct Work {
    Settings settings;
    std::vector<Names> certificates;
    friend bool operator==(const Work&, const Work&) = default;
  };
  // The state of a certificate's file, as the thread last read it.
  struct Known {
    std::optional<net::FileStamp> stamp{};  // nullopt: the file was not read yet
    CertificateInfo info{};
    SysTime renew_at{};  // the epoch: renew at once
    SysTime ask_at{};    // when to ask the authority for a renewal window
    bool waits = false;  // true: the log already says that this weir waits for the order of another weir
    std::optional<Retry> unkept{};  // when to order again, if the folder's file could not be written
  };

  void run();
  void renew(const Work& work, const std::stop_token& stop);
  void refresh_challenges(const Folder& folder);
  void forget_challenges();
  void read(const Work& work, const Names& names, Known& known);
  void ask_when(const Settings& settings, Known& known, const std::stop_token& stop);
  void check(const Work& work, const Names& names, const std::stop_token& stop);
  [[nodiscard]] base::Result<void> order(const Settings& settings, const Names& names, Client& client,
                                         const Key& account, const std::stop_token& stop);
  void note_failure(const Settings& settings, const Names& names, const std::string& why,
                    std::optional<std::chrono::seconds> wanted_pause);
  [[nodiscard]] std::optional<Retry> retry(const Settings& settings, const Names& names);
  void keep_retry(const Settings& settings, const Names& names, const Retry& retry);
  void complain(const std::string& what);

  const std::shared_ptr<net::Challenges> challenges_;  // TLS contexts share it
  const Callbacks callbacks_;
  std::mutex mutex_;  // guards the next four members
  std::condition_variable wake_;
  std::shared_ptr<const Work> work_;  // null: there is nothing to order
  std::stop_source stop_;             // stops the work in work_
  bool ended_ = false;
  std::atomic<std::uint64_t> ok_{0}, failed_{0}, placeholders_{0};
  // Only the thread uses the members below.
  std::map<std::string, Known> known_;  // the key is the path of the certificate's file
  std::vector<PendingChallenge> shown_;
  // True: the thread may still ask the authority for a renewal window in this round. It asks at most once a
  // round: the answer may take long, and meanwhile the workers do not answer new challenges of other weirs
  // that share the folder.
  bool may_ask_ = true;
  std::string complaint_;  // the last warning about the folder; it is logged once
  std::mt19937_64 chance_{std::random_device{}()};
  std::thread thread_;
};

}  // namespace weir::acme
