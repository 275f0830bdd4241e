#include "weir/upgrade/permit_changes.hpp"

#include <charconv>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::upgrade {

namespace {

constexpr std::size_t kMessage = 32 << 10;  // maximum number of bytes in a message

}  // namespace

std::string text_of(const PermitChange& line) {
  return std::to_string(line.key.hi) + ' ' + std::to_string(line.key.lo) + ' ' + std::to_string(line.units) +
         ' ' + std::string(line.rule);
}

std::optional<PermitChange> permit_change_of(std::string_view text) {
  PermitChange line;
  const auto take = [&](auto& number) {
    const auto end = text.find(' ');
    if (end == std::string_view::npos) return false;
    const auto parsed = std::from_chars(text.data(), text.data() + end, number);
    const bool whole = parsed.ec == std::errc{} && parsed.ptr == text.data() + end;
    text.remove_prefix(end + 1);
    return whole;
  };
  if (!take(line.key.hi) || !take(line.key.lo) || !take(line.units)) return std::nullopt;
  line.rule = text;
  return line;
}

std::vector<std::vector<std::string>> in_messages(std::vector<std::string> lines) {
  std::vector<std::vector<std::string>> messages;
  std::size_t size = kMessage;
  for (auto& line : lines) {
    if (size + line.size() + 1 > kMessage) {
      messages.emplace_back();
      size = 0;
    }
    size += line.size() + 1;
    messages.back().push_back(std::move(line));
  }
  return messages;
}

PermitChanges::~PermitChanges() {
  table_.unwatch_permits();
}

std::vector<std::string> PermitChanges::begin(std::vector<limit::SavedRule> rules) {
  rules_ = std::move(rules);
  table_.watch_permits(rules_, [this](const limit::PermitDelta& held) { note(held); });
  return take();
}

void PermitChanges::stop() {
  table_.unwatch_permits();
  const std::lock_guard lock(mutex_);
  changes_.clear();
}

void PermitChanges::follow(Send follow) {
  send_ = std::move(follow);
  send();
}

// If memory runs out, the change is not reported. The new process then keeps the counts that were reported
// before, until this process ends.
void PermitChanges::note(const limit::PermitDelta& held) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    changes_.push_back(held);
    if (std::exchange(sending_, true)) return;
    net::asio::post(control_, [this] { send(); });
  } catch (...) {
    return;
  }
}

std::vector<std::string> PermitChanges::take() {
  std::vector<limit::PermitDelta> changes;
  {
    const std::lock_guard lock(mutex_);
    changes.swap(changes_);
  }
  std::vector<std::string> lines;
  lines.reserve(changes.size());
  for (const auto& held : changes) lines.push_back(text_of({held.key, held.units, rules_[held.rule].name}));
  return lines;
}

void PermitChanges::send() {
  {
    const std::lock_guard lock(mutex_);
    sending_ = false;
  }
  for (const auto& message : in_messages(take())) send_(message);
}

}  // namespace weir::upgrade
