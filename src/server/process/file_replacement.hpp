// Replaces a file by a new one, so that after a power cut the file is either the old or the new one, and
// complete. Until the new file is complete, its name is "FILE.new".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sys/stat.h>

namespace weir::server {

class FileReplacement {
 public:
  // Creates the new file, which only weir's user can read.
  explicit FileReplacement(const std::string& path);
  ~FileReplacement();  // removes the new file if it has not replaced the old one
  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;

  // Gives the new file the owner, the group and the permissions of another file.
  void take_owner_and_mode(const struct ::stat& other);
  void write(std::string_view bytes);
  // Syncs the new file to disk, renames it, and syncs the folder.
  void take_its_place();

  // Returns the name of the new file until it replaces the old one.
  [[nodiscard]] const std::string& draft() const noexcept { return draft_; }
  // Returns true if the new file has replaced the old one.
  [[nodiscard]] bool is_in_place() const noexcept { return done_; }
  // Returns the errno of the first failure; 0 if there was none.
  [[nodiscard]] int fault() const noexcept { return fault_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  void fail();

  const std::string path_, draft_;
  int fd_ = -1;
  int fault_ = 0;
  bool done_ = false;
  std::uint64_t size_ = 0;
};

}  // namespace weir::server
