#include "weir/policy/identity/fetched_keys.hpp"

#include "policy/identity/token_keys.hpp"

#include <algorithm>
#include <utility>

namespace weir::policy {

std::shared_ptr<const std::vector<TokenKey>> FetchedKeys::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

FetchedKeys::FetchNumber FetchedKeys::want() {
  std::function<void()> callback;
  FetchNumber number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = wanted_ = begun_ + 1;
    callback = on_want_;
  }
  if (callback) callback();
  return number;
}

bool FetchedKeys::has_fetched(FetchNumber number) const {
  const std::lock_guard lock(mutex_);
  return succeeded_ >= number;
}

bool FetchedKeys::is_failing() const {
  const std::lock_guard lock(mutex_);
  return failing_;
}

bool FetchedKeys::enter(std::uint32_t most) noexcept {
  if (waiting_.fetch_add(1, std::memory_order_relaxed) < most) return true;
  leave();
  return false;
}

void FetchedKeys::on_want(std::function<void()> called) {
  const std::lock_guard lock(mutex_);
  on_want_ = std::move(called);
}

bool FetchedKeys::is_wanted() const {
  const std::lock_guard lock(mutex_);
  return wanted_ > begun_;
}

void FetchedKeys::begin_fetch() {
  const std::lock_guard lock(mutex_);
  ++begun_;
}

base::Result<std::size_t> FetchedKeys::store(std::string_view jwk_set) {
  auto read = read_jwk_set(jwk_set, {});
  const std::lock_guard lock(mutex_);
  failing_ = !read;
  if (!read) return read.error();
  succeeded_ = begun_;
  keys_ = std::make_shared<const std::vector<TokenKey>>(std::move(*read));
  return count_keys(*keys_);
}

void FetchedKeys::fail() {
  const std::lock_guard lock(mutex_);
  failing_ = true;
}

}  // namespace weir::policy
