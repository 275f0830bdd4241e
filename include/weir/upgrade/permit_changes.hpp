// Reports changes of concurrency permits from the old process to the new one after an upgrade. So both
// processes together stay within the limits. A line "KEY KEY UNITS RULE" says how many more (or fewer)
// permits a key holds.
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
// Returns the line for a change.
[[nodiscard]] std::string text_of(const PermitChange& line);
// Returns the change that a line describes; nullopt if the line has another form. The result points into
// `text`.
[[nodiscard]] std::optional<PermitChange> permit_change_of(std::string_view text);

// Divides the lines into messages of at most about 32 KiB.
[[nodiscard]] std::vector<std::vector<std::string>> in_messages(std::vector<std::string> lines);

// Used by the old process. Belongs to the main thread; any thread may change permits. The table outlives this
// object.
class PermitChanges {
 public:
  // Must send the lines as one message.
  using Tell = std::function<void(const std::vector<std::string>&)>;

  PermitChanges(net::Executor control, limit::KeyTable& table) noexcept : control_(control), table_(table) {}
  ~PermitChanges();
  PermitChanges(const PermitChanges&) = delete;
  PermitChanges& operator=(const PermitChanges&) = delete;

  // Returns lines about the permits that are held now, and starts to watch changes. Keeps later changes until
  // tell() is called. REQUIRES what KeyTable::watch_permits requires.
  [[nodiscard]] std::vector<std::string> begin(std::vector<limit::SavedRule> rules);
  // Stops watching. Must be called if no process takes over.
  void stop();
  // Calls `tell` on the main thread with all changes since begin(): now, and soon after each later change.
  void tell(Tell tell);

 private:
  void note(const limit::PermitDelta& held) noexcept;
  [[nodiscard]] std::vector<std::string> take();
  void send();

  net::Executor control_;
  limit::KeyTable& table_;
  std::vector<limit::SavedRule> rules_;  // used only for the names of rules
  Tell tell_;
  std::mutex mutex_;
  std::vector<limit::PermitDelta> changes_;  // guarded by mutex_, as is sending_
  bool sending_ = true;                      // send() will run soon, or tell() has not been called yet
};

}  // namespace weir::upgrade
