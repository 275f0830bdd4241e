// Changes the keys file on the disk.
#pragma once

#include "weir/config/keys_edit.hpp"
#include "weir/config/settings.hpp"

#include <string>

namespace weir::server {

// The result of a change.
struct KeysFileEdit {
  config::EditedKeys edited;  // its `text` is empty, because the text is in the file
  net::FileStamp stamp{};     // the stamp of the new file
};

// Changes one key in the file. Blocks until the new file and its name are on the disk.
// * Replaces the file as a whole, so readers see either the old or the new one. The file keeps its owner and
//   its permissions.
// * Reads the file first, so that changes by hand are kept.
// * Locks the file, so that two processes of weir never change it at the same time: the second one gets the
//   fault Busy.
// * Checks once more, immediately before it replaces the file, whether somebody has changed the file, because
//   an editor does not use the lock. If the file has changed, returns Busy, too.
[[nodiscard]] KeysFileEdit edit_keys_file(const std::string& path, const config::KeyEdit& edit);

}  // namespace weir::server
