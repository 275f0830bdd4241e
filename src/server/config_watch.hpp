// Notices that the configuration file, or a file that it names, has changed.
#pragma once

#include "weir/config/settings.hpp"
#include "weir/net/file_stamp.hpp"

#include <string>
#include <vector>

namespace weir::server {

// Compares the files with what weir has read. Belongs to the main thread, which calls has_changed() at
// intervals.
class ConfigWatch {
 public:
  // Watches these files from now on. The caller must have taken their stamps before weir read the files. So
  // has_changed() also notices a change during the reading.
  void watch(const std::vector<config::WatchedFile>& files);

  // Watches these files, too, until the next call of watch(). Must be called if a configuration cannot be
  // used because of a mistake in one of its files.
  void add(const std::vector<config::WatchedFile>& files);

  // Must be called after weir itself has replaced a file and uses the new content. Otherwise has_changed()
  // would report this change.
  void note_replaced(const config::WatchedFile& file);

  // Returns true if a file has changed since weir read it, and no file has changed since the previous call. A
  // file that is still being written is thus not read. Returns true once for each change, even if the reload
  // then fails.
  [[nodiscard]] bool has_changed();

 private:
  std::vector<std::string> paths_;
  net::FileStamps read_;  // the stamps of the files when weir read them
  net::FileStamps seen_;  // the stamps at the previous check
};

}  // namespace weir::server
