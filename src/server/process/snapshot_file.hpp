// The file that keeps the table's live keys while weir does not run ([state.memory] snapshot).
//
// weir reads the file once at start and writes it once at the end of the drain. It writes another file first
// and then renames it, so that a snapshot is always complete. Only the owner may read the file
// (limit/snapshot.hpp says why). A faulty file loses the state but never prevents the start. weir renames it
// to FILE.damaged, logs the reason in one line, and starts without state.
//
// Belongs to the main thread. Each weir needs a file of its own.
#pragma once

#include "weir/limit/snapshot.hpp"
#include "weir/log/log.hpp"

#include <optional>
#include <span>
#include <string>

namespace weir::server {

class SnapshotFile {
 public:
  // Opens and checks the file, unless `reads` is false because the state comes from elsewhere. An empty path
  // means that there is no snapshot, and all calls do nothing.
  SnapshotFile(std::string path, std::span<const limit::SavedRule> rules, log::Log& log, bool reads = true);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  // Returns the header of the file; nullopt if there is no usable file.
  [[nodiscard]] const std::optional<limit::Snapshot>& found() const noexcept { return found_; }
  // Fills the table from the file, if there is one.
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
  log::Log& log_;
  int fd_ = -1;
  int fault_ = 0;  // errno of a failed read
  std::optional<limit::Snapshot> found_;
};

}  // namespace weir::server
