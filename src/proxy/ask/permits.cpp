#include "proxy/ask/permits.hpp"

#include "weir/base/hex.hpp"

#include <charconv>
#include <cstdlib>
#include <new>
#include <utility>

namespace weir::proxy {

namespace {

// The largest number of permits that expire in one tick, so that a tick takes a few milliseconds at most.
constexpr int kMostExpired = 1000;

// Returns a name for a new permit: the number of its worker, and 128 random bits as hex digits.
std::string new_name(unsigned owner) {
  base::Digest128 chance;
  ::arc4random_buf(&chance, sizeof chance);
  return std::to_string(owner) + "-" + base::in_hex(chance);
}

// Returns true if both settings belong to one listener (before and after a reload), or to two listeners with
// the same token. Two listeners without a token may have different askers, for example if one of them
// requires client certificates.
bool have_same_askers(const AskSettings& one, const AskSettings& other) noexcept {
  return one.open_permits == other.open_permits || (!one.token.empty() && one.token == other.token);
}

}  // namespace

Permits::Permits(Worker& worker, PermitOwners* owners)
    : Watched(worker.watchdog),
      worker_(worker),
      owners_(owners),
      number_(owners != nullptr ? owners->join(worker.executor, *this) : 0) {}

Permits::~Permits() {
  if (owners_ != nullptr) owners_->leave(number_);
  while (!open_.empty()) end(open_.begin(), observe::PermitEnd::Expired);
}

std::string Permits::add(std::unique_ptr<QuestionExchange> question, PermitCount::Reservation reservation,
                         std::shared_ptr<const AskSettings> listener) {
  auto name = new_name(number_);
  const auto deadline = deadlines_.emplace(worker_.clock.now() + listener->permit_ttl, name);
  try {
    open_.emplace(name, Permit{std::move(question), std::move(reservation), std::move(listener), deadline});
  } catch (...) {
    deadlines_.erase(deadline);
    throw;
  }
  worker_.counters.ask.permits.add();
  wake();
  return name;
}

Permits::Result Permits::settle(const ask::SettleRequest& request, const AskSettings& listener) {
  const auto found = open_.find(request.permit);
  if (found == open_.end() || !have_same_askers(*found->second.listener, listener)) return Result::Unknown;
  if (!found->second.question->settle(request)) return Result::BadHeaders;
  end(found, request.refund ? observe::PermitEnd::Refunded : observe::PermitEnd::Settled);
  return Result::Settled;
}

void Permits::withdraw(const std::string& permit) noexcept {
  const auto found = open_.find(permit);
  if (found == open_.end()) return;
  try {
    found->second.question->withdraw(0, "client_left");
  } catch (const std::bad_alloc&) {  // no memory for the command to Redis, so the charge there remains
  }
  end(found, observe::PermitEnd::Refunded);
}

void Permits::end(Open::iterator permit, observe::PermitEnd how) noexcept {
  worker_.counters.ask.permits_ended(how).add();
  worker_.counters.ask.permits.remove();
  deadlines_.erase(permit->second.deadline);
  open_.erase(permit);
}

void Permits::on_tick() noexcept {
  const auto now = worker_.clock.now();
  for (int n = 0; n < kMostExpired && !deadlines_.empty() && deadlines_.begin()->first <= now; ++n)
    end(open_.find(deadlines_.begin()->second), observe::PermitEnd::Expired);
  if (open_.empty()) skip_ticks();
}

std::optional<unsigned> Permits::owner_of(std::string_view permit) noexcept {
  unsigned owner = 0;
  const auto parsed = std::from_chars(permit.data(), permit.data() + permit.size(), owner);
  const bool named =
      parsed.ec == std::errc{} && parsed.ptr != permit.data() + permit.size() && *parsed.ptr == '-';
  return named ? std::optional(owner) : std::nullopt;
}

}  // namespace weir::proxy
