// The file that keeps the table's live keys while weir is not running ([state.memory] snapshot).
//
// Read once at start, written once at the end of the drain: to a file beside it, which then takes its place,
// so that there is always one whole snapshot or none. Its owner alone may read it (limit/snapshot.hpp says
// why). Whatever is wrong with it costs the state, never the start: the file is set aside as FILE.damaged,
// one line of the log says why, and weir starts afresh.
//
// Belongs to the main thread. One weir a file.
#pragma once

#include "weir/limit/snapshot.hpp"
#include "weir/log/log.hpp"

#include <optional>
#include <span>
#include <string>

namespace weir::app {

class SnapshotFile {
 public:
  // Opens and checks it, unless the state comes from elsewhere (`reads` is false). An empty path: there is
  // none, and nothing is ever done.
  SnapshotFile(std::string path, std::span<const limit::SavedRule> rules, Log& log, bool reads = true);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  // What the file says; nullopt where there is nothing to go on from.
  [[nodiscard]] const std::optional<limit::Snapshot>& found() const noexcept { return found_; }
  // Fills the table from it, if there was one.
  void restore(limit::KeyTable& table, std::span<const limit::SavedRule> rules, const limit::RestoreAt& at,
               const limit::Adopt& adopt = {});
  void save(const limit::KeyTable& table, const limit::Snapshot& snapshot,
            std::span<const limit::SavedRule> rules);

 private:
  void open(std::span<const limit::SavedRule> rules);
  void set_aside(const std::string& why);
  void close() noexcept;
  [[nodiscard]] limit::ByteSource bytes();

  const std::string path_;
  Log& log_;
  int fd_ = -1;
  int fault_ = 0;  // errno of a read
  std::optional<limit::Snapshot> found_;
};

}  // namespace weir::app
