// Reports changes of concurrency permits from the process that has handed over to the one that has taken
// over. So both together stay within the limits. A line "KEY KEY UNITS RULE" says how many permits more (or
// fewer) a key has.
#pragma once

#include "weir/limit/key_table.hpp"
#include "weir/limit/saved.hpp"
#include "weir/net/asio.hpp"

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::upgrade {

struct PermitChange {
  limit::Key key;
  std::int64_t units = 0;
  std::string_view rule;  // name of the rule
  friend bool operator==(const PermitChange&, const PermitChange&) = default;
};
[[nodiscard]] std::string text_of(const PermitChange& line);
// Returns nullopt if the text has another form. The result points into `text`.
[[nodiscard]] std::optional<PermitChange> permit_change_of(std::string_view text);

// Divides the lines into messages of about 32 KiB.
[[nodiscard]] std::vector<std::vector<std::string>> in_messages(std::vector<std::string> lines);

// Used by the process that hands over. Belongs to the main thread; any thread may change permits. The table
// outlives this object.
class PermitChanges {
 public:
  // Sends the lines of one message.
  using Tell = std::function<void(const std::vector<std::string>&)>;

  PermitChanges(net::Executor control, limit::KeyTable& table) noexcept : control_(control), table_(table) {}
  ~PermitChanges();
  PermitChanges(const PermitChanges&) = delete;
  PermitChanges& operator=(const PermitChanges&) = delete;

  // Returns the permits that are held now. Later changes are kept until tell() is called. REQUIRES what
  // KeyTable::watch_permits requires.
  [[nodiscard]] std::vector<std::string> begin(std::vector<limit::SavedRule> rules);
  // Stops watching, because no process takes over.
  void stop();
  // Calls `tell` on the main thread, now and soon after each change.
  void tell(Tell tell);

 private:
  void note(const limit::PermitDelta& held) noexcept;
  [[nodiscard]] std::vector<std::string> take();
  void send();

  net::Executor control_;
  limit::KeyTable& table_;
  std::vector<limit::SavedRule> rules_;  // used only for the names
  Tell tell_;
  std::mutex mutex_;
  std::vector<limit::PermitDelta> changes_;  // guarded by the mutex, as the next member
  bool sending_ = true;                      // send() is due to run, or tell() was not called yet
};

}  // namespace weir::upgrade
