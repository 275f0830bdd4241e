#include "server/process/keys_file_edit.hpp"

#include "server/process/file_replacement.hpp"

#include "weir/net/file.hpp"
#include "weir/net/owned_descriptor.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::server {

namespace {

using config::KeyEditFault;

KeysFileEdit refusal(KeyEditFault fault, std::string why) {
  KeysFileEdit refused;
  refused.edited.fault = fault;
  refused.edited.why = std::move(why);
  return refused;
}

// Returns the path without symbolic links. Replacing a link would leave the linked file unchanged.
std::string real_path(const std::string& path) {
  std::error_code ignored;
  const auto real = std::filesystem::canonical(path, ignored);
  return real.empty() ? path : real.string();
}

// Locks the file against other processes of weir until the descriptor is closed. Returns false if another
// process has locked the file, or replaced it after `file` was opened.
bool lock_file(const net::OwnedDescriptor& file, const std::string& path, struct ::stat& status) {
  struct ::stat now {};
  return ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(file.get(), &status) == 0 &&
         ::stat(path.c_str(), &now) == 0 && now.st_ino == status.st_ino && now.st_dev == status.st_dev;
}

KeysFileEdit unwritable(const std::string& path, int error) {
  const bool denied = error == EACCES || error == EPERM;
  return refusal(KeyEditFault::Unwritable,
                 path + " cannot be replaced: " + std::system_category().message(error) +
                     (denied ? "; weir's user must own the file, be in its group, and be allowed to write in "
                               "its folder"
                             : ""));
}

}  // namespace

KeysFileEdit edit_keys_file(const std::string& path, const config::KeyEdit& edit) {
  const auto real = real_path(path);
  const net::OwnedDescriptor file(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0)
    return refusal(KeyEditFault::Unreadable,
                   path + " cannot be read: " + std::system_category().message(errno));
  struct ::stat status {};
  if (!lock_file(file, real, status))
    return refusal(KeyEditFault::Busy, path + " is being changed by another process; try again");
  const auto before = net::stamp_of(real);
  const auto text = net::read_file(real, net::kLargestText);
  if (!text) return refusal(KeyEditFault::Unreadable, path + " cannot be read: " + text.error().message);
  KeysFileEdit done{config::edit_keys(*text, path, edit), {}};
  if (done.edited.fault != KeyEditFault::None) return done;
  const auto fresh = std::exchange(done.edited.text, {});
  if (fresh.size() > net::kLargestText)
    return refusal(KeyEditFault::Unwritable, path + " would be longer than " +
                                                 std::to_string(net::kLargestText) + " bytes; remove keys");
  FileReplacement replacement(real);
  replacement.take_owner_and_mode(status);
  replacement.write(fresh);
  if (replacement.fault() != 0) return unwritable(path, replacement.fault());
  if (net::stamp_of(real) != before)
    return refusal(KeyEditFault::Busy, path + " was changed at the same moment; try again");
  done.stamp = net::stamp_of(replacement.draft());
  replacement.take_its_place();
  return replacement.is_in_place() ? std::move(done) : unwritable(path, replacement.fault());
}

}  // namespace weir::server
