// The snapshot file: keeps the live keys of the key table while weir does not run ([state.memory] snapshot).
//
// weir reads the file at start and writes it at the end of the drain. It first writes a new file, and then
// gives the new file the name of the snapshot file. So the snapshot file is always complete. Only the owner
// may read the file (limit/snapshot.hpp says why).
//
// A faulty file never prevents the start. weir renames it to FILE.damaged, logs the reason in one line, and
// starts without saved keys.
//
// Program owns the object, which belongs to the main thread. Two running weirs must not use the same file.
#pragma once

#include "weir/limit/snapshot.hpp"
#include "weir/log/log.hpp"

#include <optional>
#include <span>
#include <string>

namespace weir::server {

class SnapshotFile {
 public:
  // Opens and checks the file. `reads`: false if this process gets the keys from an old process, and
  // therefore must not read the file. If the path is empty, there is no snapshot file, and all calls do
  // nothing. `log` must outlive this object.
  SnapshotFile(std::string path, std::span<const limit::SavedRule> rules, log::Log& log, bool reads = true);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  // Returns the header of the file; nullopt if no usable file was found.
  [[nodiscard]] const std::optional<limit::Snapshot>& found() const noexcept { return found_; }
  // Restores the keys of the key table from the file if a usable file was found.
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
