#include "weir/upstream/resolver.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::upstream {

namespace {

// Returns the addresses as text. Omits the end of a long list.
std::string list(const Addresses& addresses) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t at = 0; at < std::min(kMost, addresses.size()); ++at)
    text += (text.empty() ? "" : ", ") + net::peer_address(addresses[at]).to_string();
  if (addresses.size() > kMost) text += " and " + std::to_string(addresses.size() - kMost) + " more";
  return text;
}

}  // namespace

// The state that the event loop's thread and the look-up thread share. The last of the two owners frees it.
struct Resolver::Desk {
  Desk(Resolver& resolver, LookUp how) : look_up(std::move(how)), owner(&resolver) {}

  static void serve(const std::shared_ptr<Desk>& desk);
  void put(const base::Endpoint& address);

  const LookUp look_up;
  std::mutex mutex;
  std::condition_variable news;
  std::optional<base::Endpoint> question;  // the name to look up; protected by the mutex
  bool busy = false;                       // a look-up is running; protected by the mutex
  // Only the loop's thread sets this pointer, under the mutex. The look-up thread reads it under the mutex.
  // Null: the resolver is destroyed.
  Resolver* owner;
};

void Resolver::Desk::put(const base::Endpoint& address) {
  const std::scoped_lock lock(mutex);
  question = address;
  news.notify_one();
}

void Resolver::Desk::serve(const std::shared_ptr<Desk>& desk) {
  for (std::unique_lock lock(desk->mutex);;) {
    desk->news.wait(lock, [&] { return desk->owner == nullptr || desk->question; });
    if (desk->owner == nullptr) return;
    const auto question = *std::exchange(desk->question, std::nullopt);
    desk->busy = true;
    lock.unlock();
    auto answer = desk->look_up(question);
    lock.lock();
    desk->busy = false;
    if (desk->owner == nullptr) return;
    net::asio::post(desk->owner->control_, [desk, said = std::move(answer)] {
      if (desk->owner != nullptr) desk->owner->hear(said);
    });
  }
}

// One server whose address is a host name.
struct Resolver::Name {
  std::shared_ptr<ServerGroup> server_group;  // shared with the configuration's snapshots
  std::size_t server;
  Resolution resolution;
};

Resolver::Resolver(net::asio::io_context& control, const net::Clock& clock, Report report, LookUp look_up)
    : control_(control),
      clock_(clock),
      report_(std::move(report)),
      timer_(control.get_executor()),
      desk_(std::make_shared<Desk>(*this, std::move(look_up))) {}

Resolver::~Resolver() {
  if (!thread_.joinable()) return;
  bool busy = false;
  {
    const std::scoped_lock lock(desk_->mutex);
    desk_->owner = nullptr;
    busy = desk_->busy;
    desk_->news.notify_one();
  }
  busy ? thread_.detach() : thread_.join();
}

void Resolver::watch(const std::vector<std::shared_ptr<ServerGroup>>& server_groups) {
  const auto gone = [&](const std::shared_ptr<Name>& name) {
    return std::find(server_groups.begin(), server_groups.end(), name->server_group) == server_groups.end();
  };
  std::erase_if(names_, gone);
  auto before = std::exchange(figures_, {});
  for (const auto& server_group : server_groups) {
    const auto of_it = [&](const std::shared_ptr<Name>& name) { return name->server_group == server_group; };
    if (std::none_of(names_.begin(), names_.end(), of_it)) add(server_group);
    if (std::none_of(names_.begin(), names_.end(), of_it)) continue;
    const auto& upstream = server_group->settings().name;
    figures_[upstream] = before.contains(upstream) ? before[upstream] : Figures{.upstream = upstream};
  }
  arm();
}

void Resolver::add(const std::shared_ptr<ServerGroup>& server_group) {
  const auto period = server_group->settings().resolve;
  for (std::size_t at = 0; at < server_group->size(); ++at) {
    if (!net::is_name(server_group->member(at).settings().address)) continue;
    const bool unknown = server_group->member(at).location().addresses->empty();
    const bool once = period == base::Duration{0};
    if (once && !unknown) continue;
    if (!thread_.joinable()) thread_ = std::thread([desk = desk_] { Desk::serve(desk); });
    const Resolution resolution(once ? Resolution::kWhileUnknown : period, clock_.now(), random_(), unknown);
    names_.push_back(std::make_shared<Name>(Name{server_group, at, resolution}));
  }
}

// Stops watching names that have an address, if the configuration does not ask for repeated look-ups.
void Resolver::drop_known() {
  std::erase_if(names_, [](const std::shared_ptr<Name>& name) {
    return name->server_group->settings().resolve == base::Duration{0} &&
           !name->server_group->member(name->server).location().addresses->empty();
  });
}

// Sets the timer to the time of the next look-up.
void Resolver::arm() {
  if (asking_ || names_.empty()) return;
  const auto next = std::min_element(names_.begin(), names_.end(), [](const auto& left, const auto& right) {
    return left->resolution.due() < right->resolution.due();
  });
  asked_ = *next;
  timer_.expires_at(clock_.steady((*next)->resolution.due()));
  timer_.async_wait([this](const net::ErrorCode& ec) {
    if (!ec) ask();
  });
}

void Resolver::ask() {
  if (asking_) return;  // the timer may fire twice if it was set again
  const auto name = asked_.lock();
  if (!name) return arm();
  asking_ = true;
  desk_->put(name->server_group->member(name->server).settings().address);
}

void Resolver::hear(const base::Result<Addresses>& answer) {
  asking_ = false;
  if (const auto name = asked_.lock()) note(*name, answer);
  drop_known();
  arm();
}

void Resolver::note(Name& name, const base::Result<Addresses>& answer) {
  using Outcome = Resolution::Outcome;
  const auto now = clock_.now();
  auto& member = name.server_group->member(name.server);
  const auto known = member.location().addresses;
  auto step = name.resolution.take(*known, answer, now, random_());
  auto& figures = figures_[name.server_group->settings().name];
  ++(step.outcome == Outcome::Same      ? figures.same
     : step.outcome == Outcome::Changed ? figures.changed
                                        : figures.failed);
  const auto server = "upstream \"" + name.server_group->settings().name + "\": server " + member.name();
  if (known->empty()) {
    if (step.outcome != Outcome::Changed) return;
    report_(server + " resolves now, to " + list(step.addresses));
    return member.move_to(std::move(step.addresses), now);
  }
  if (step.turned && step.outcome == Outcome::Failed)
    report_(server + " keeps its addresses " + list(*known) + ": " +
            (answer ? "its name has no address" : answer.error().message));
  else if (step.turned)
    report_(server + " resolves again");
  if (step.outcome != Outcome::Changed) return;
  report_(server + " now resolves to " + list(step.addresses) + "; before: " + list(*known));
  member.move_to(std::move(step.addresses), now);
}

std::vector<Resolver::Figures> Resolver::figures() const {
  std::vector<Figures> figures;
  for (const auto& each : figures_) figures.push_back(each.second);
  return figures;
}

}  // namespace weir::upstream
