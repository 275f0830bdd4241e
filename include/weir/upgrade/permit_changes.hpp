// After an upgrade, the old process reports changes of its concurrency permits to the new process. So the two
// processes together stay within the limits. Each report is a line "HIGH LOW UNITS RULE". UNITS is the number
// of permits of the key that were added. A negative number means that permits were released. HIGH and LOW are
// the two halves of the 128-bit key as decimal numbers.
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
// Returns the change that a line describes; nullopt if the line has another form. The result points into
// `text`.
[[nodiscard]] std::optional<PermitChange> permit_change_of(std::string_view text);

// Splits the lines into messages of at most about 32 KiB.
[[nodiscard]] std::vector<std::vector<std::string>> in_messages(std::vector<std::string> lines);

// Runs in the old process: records changes of concurrency permits and reports them to the new process.
// PermitChanges belongs to the main thread, but any thread may change permits. The table must outlive this
// object.
class PermitChanges {
 public:
  // A callback that must send the lines as one message.
  using Send = std::function<void(const std::vector<std::string>&)>;

  PermitChanges(net::Executor control, limit::KeyTable& table) noexcept : control_(control), table_(table) {}
  ~PermitChanges();
  PermitChanges(const PermitChanges&) = delete;
  PermitChanges& operator=(const PermitChanges&) = delete;

  // Returns lines about the permits that are held now, and starts to record changes. Keeps later changes
  // until follow() is called. Has the same requirements as KeyTable::watch_permits.
  [[nodiscard]] std::vector<std::string> begin(std::vector<limit::SavedRule> rules);
  // Stops recording changes. Must be called if no process takes over.
  void stop();
  // Calls `follow` on the main thread with all changes since begin(): now for the first time, and again soon
  // after each change.
  void follow(Send follow);

 private:
  void note(const limit::PermitDelta& held) noexcept;
  [[nodiscard]] std::vector<std::string> take();
  void send();

  net::Executor control_;
  limit::KeyTable& table_;
  std::vector<limit::SavedRule> rules_;  // used only for the names of rules
  Send send_;
  std::mutex mutex_;
  std::vector<limit::PermitDelta> changes_;  // guarded by mutex_, like sending_
  bool sending_ = true;  // true if send() will run soon, or if follow() has not been called yet
};

}  // namespace weir::upgrade
