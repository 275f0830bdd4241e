#include "weir/upgrade/handed_state.hpp"

#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace weir::upgrade {

namespace {

base::Error system_error(const char* what) {
  return base::Error{std::string(what) + ": " + std::system_category().message(errno)};
}

// Returns false and sets errno if not all bytes could be written.
bool write_all(int file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const auto count = ::write(file, bytes.data(), bytes.size());
    if (count > 0)
      bytes.remove_prefix(static_cast<std::size_t>(count));
    else if (errno != EINTR)
      return false;
  }
  return true;
}

limit::ByteSource bytes_of(int file) {
  ::lseek(file, 0, SEEK_SET);
  return [file](std::span<char> into) {
    std::size_t filled = 0;
    while (filled < into.size()) {
      const auto count = ::read(file, into.data() + filled, into.size() - filled);
      if (count == 0 || (count < 0 && errno != EINTR)) break;
      if (count > 0) filled += static_cast<std::size_t>(count);
    }
    return filled;
  };
}

}  // namespace

base::Result<HandedState> write_state(const limit::KeyTable& table, const limit::Snapshot& snapshot,
                                      std::span<const limit::SavedRule> rules) {
  HandedState state;
  state.file = net::OwnedDescriptor(::memfd_create("weir-state", MFD_CLOEXEC));
  if (state.file.get() < 0) return system_error("cannot create a memory file for the state of limits");
  bool whole = true;
  state.keys = limit::write_snapshot(table, snapshot, rules, [&](std::string_view more) {
    whole = whole && write_all(state.file.get(), more);
  });
  if (!whole) return system_error("cannot write the state of limits");
  return state;
}

base::Result<limit::Restored> read_state(int file, std::span<const limit::SavedRule> rules,
                                         const limit::RestoreAt& at, limit::KeyTable& table,
                                         const limit::Adopt& adopt) {
  const auto checked = limit::check_snapshot(bytes_of(file), rules);
  if (!checked) return base::Error{"the state of limits " + checked.error().message};
  return limit::restore_snapshot(bytes_of(file), rules, at, table, adopt);
}

std::string kept_in_words(std::uint64_t keys, std::uint64_t changed, std::uint64_t left_out) {
  auto words = std::to_string(keys) + (keys == 1 ? " key" : " keys");
  if (changed != 0)
    words +=
        "; " + std::to_string(changed) +
        (changed == 1 ? " belonged to a removed or changed rule" : " belonged to removed or changed rules");
  if (left_out != 0) words += "; " + std::to_string(left_out) + " did not fit; raise max_keys";
  return words;
}

}  // namespace weir::upgrade
