#include "server/config_watch.hpp"

#include <algorithm>
#include <utility>

namespace weir::server {

void ConfigWatch::watch(const std::vector<config::WatchedFile>& files) {
  paths_.clear();
  read_.clear();
  for (const auto& file : files) {
    paths_.push_back(file.path);
    read_.push_back(file.stamp);
  }
  seen_ = read_;
}

void ConfigWatch::add(const std::vector<config::WatchedFile>& files) {
  for (const auto& file : files) {
    if (std::find(paths_.begin(), paths_.end(), file.path) != paths_.end()) continue;
    paths_.push_back(file.path);
    read_.push_back(file.stamp);
    seen_.push_back(file.stamp);
  }
}

void ConfigWatch::note_replaced(const config::WatchedFile& file) {
  for (std::size_t i = 0; i < paths_.size(); ++i)
    if (paths_[i] == file.path) read_[i] = seen_[i] = file.stamp;
}

bool ConfigWatch::has_changed() {
  net::FileStamps found;
  for (const auto& path : paths_) found.push_back(net::stamp_of(path));
  const bool is_stable = found == seen_;
  seen_ = std::move(found);
  if (!is_stable || seen_ == read_) return false;
  read_ = seen_;
  return true;
}

}  // namespace weir::server
