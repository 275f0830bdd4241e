#include "weir/redis/inspection.hpp"

#include "redis/cluster/cluster_slots.hpp"
#include "redis/connection/classify.hpp"
#include "redis/connection/command.hpp"
#include "redis/connection/request_reply.hpp"
#include "redis/connection/sentinels.hpp"
#include "redis/connection/setup_commands.hpp"
#include "redis/trial.hpp"

#include "weir/net/reactor.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace weir::redis {

namespace {

using namespace std::chrono_literals;
using Steady = std::chrono::steady_clock;

constexpr unsigned kPings = 50;
constexpr unsigned kLooksAtTheClock = 9;
constexpr base::Duration kPatience = 2s;
constexpr std::pair<int, int> kOldest{6, 2};
constexpr std::string_view kReplica = "slave";  // the role of a replica in the reply to INFO

std::string_view line_of(std::string_view info, std::string_view name) {
  for (std::size_t at = 0; at < info.size();) {
    const auto end = std::min(info.find("\r\n", at), info.size());
    const auto line = info.substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':'))
      return line.substr(name.size() + 1);
    at = end + 2;
  }
  return {};
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Returns the time in a reply to TIME, which has seconds and microseconds; nullopt for any other reply.
std::optional<base::TimePoint> instant_in(const Reply& reply) {
  if (reply.words.size() != 2) return std::nullopt;
  const auto seconds = number_in<std::int64_t>(reply.words[0]);
  const auto micros = number_in<std::int64_t>(reply.words[1]);
  if (!seconds || !micros) return std::nullopt;
  return base::TimePoint(std::chrono::seconds(*seconds) + base::Duration(*micros));
}

base::TimePoint local_time() {
  return std::chrono::floor<base::Duration>(std::chrono::system_clock::now());
}

std::string command(std::initializer_list<std::string_view> words) {
  std::string bytes;
  append_command(bytes, words);
  return bytes;
}

// Sends the commands of one inspection (`weir redis-check`), in order. A failure of the connection ends the
// inspection. An error in a server's reply does not.
class Inspector {
 public:
  Inspector(net::Executor executor, const RedisSettings& settings, Inspection& found)
      : settings_(settings),
        found_(found),
        tls_(settings.tls ? std::make_shared<TlsClient>(*settings.tls) : nullptr),
        redis_(executor, kPatience, tls_) {
    const auto tls = settings.sentinel.tls ? tls_ : nullptr;
    if (settings.topology == Topology::Sentinel)
      sentinels_ = std::make_unique<Sentinels>(executor, settings.sentinel, kPatience, tls);
  }

  net::Task<net::ErrorCode> look() {
    net::ErrorCode ec = co_await meet(0);
    for (std::size_t i = 1; i < candidates() && (ec || is_misled()); ++i) ec = co_await meet(i);
    if (!ec && found_.facts.in_cluster && settings_.topology == Topology::Cluster) ec = co_await read_nodes();
    if (!ec) ec = co_await try_rare_commands();
    if (!ec) ec = co_await time_pings();
    if (!ec) ec = co_await compare_clocks();
    if (ec && found_.unreachable.empty()) found_.unreachable = redis_.why();
    co_return ec;
  }

 private:
  // Returns how many servers may be tried: one for each configured node of the cluster or for each Sentinel.
  [[nodiscard]] std::size_t candidates() const noexcept {
    if (settings_.topology == Topology::Cluster) return settings_.nodes.size();
    return sentinels_ ? settings_.sentinel.addresses.size() : 1;
  }
  net::Task<net::ErrorCode> meet(std::size_t candidate) {
    found_.unreachable.clear();
    found_.denied.clear();
    if (candidate < settings_.nodes.size()) found_.address = settings_.nodes[candidate];
    net::ErrorCode ec;
    if (sentinels_) ec = co_await sentinels_->locate(found_.address);
    if (ec) found_.unreachable = sentinels_->why();
    if (!ec) ec = co_await redis_.open(found_.address);
    if (!ec) ec = co_await sign_in_here();
    if (!ec) ec = co_await read_facts();
    if (ec && found_.unreachable.empty()) found_.unreachable = redis_.why();
    if (sentinels_ && (ec || is_misled())) sentinels_->doubt_master();
    co_return ec;
  }
  // Returns true if a Sentinel has reported a former master that is a replica now.
  [[nodiscard]] bool is_misled() const noexcept { return sentinels_ && found_.facts.role == kReplica; }
  net::Task<net::ErrorCode> sign_in_here() {
    const SetupCommands setup = sign_in(settings_);
    net::ErrorCode ec = co_await redis_.send(setup.bytes);
    for (std::size_t i = 0; i < setup.steps.size() && !ec; ++i) {
      ec = co_await redis_.receive();
      if (ec || redis_.reply().kind != Reply::Kind::Error) continue;
      found_.unreachable = redis_.reply().text;
      ec = StoreError::NotAllowed;
    }
    co_return ec;
  }

  net::Task<net::ErrorCode> read_facts() {
    const std::string info = command({"INFO"});
    const net::ErrorCode ec = co_await redis_.ask(info);
    if (ec) co_return ec;
    const Reply& reply = redis_.reply();
    if (reply.kind == Reply::Kind::Error && rejects_all_commands(reply.text)) {
      found_.unreachable = readable(reply.text);
      co_return StoreError::NotAllowed;
    }
    if (!denied("INFO")) found_.facts = read_info(reply.text);
    co_return ec;
  }

  net::Task<net::ErrorCode> read_nodes() {
    const std::string nodes = command({"CLUSTER", "NODES"});
    const net::ErrorCode ec = co_await redis_.ask(nodes);
    if (ec || denied("CLUSTER NODES")) co_return ec;
    const auto slots = SlotMap::read(redis_.reply().text, found_.address);
    if (!slots) co_return ec;
    found_.unserved = kSlots - slots->served();
    const base::Endpoint* last = nullptr;
    // Finds only the nodes that own slots. Other nodes have no keys of weir.
    for (Slot slot = 0; slot < kSlots; ++slot) {
      const auto* owner = slots->owner(slot);
      if (owner == nullptr || owner == last || *owner == found_.address) continue;
      last = owner;
      const auto met = [&](const Inspection& other) { return other.address == *owner; };
      if (std::none_of(found_.others.begin(), found_.others.end(), met))
        found_.others.emplace_back().address = *owner;
    }
    co_return ec;
  }

  // Runs commands that the scripts use only for long logs and many permits. The commands change nothing,
  // because their key does not exist. Only denied commands are reported as obstacles. A replica, or a node
  // without the key's slot, may return other errors, which do not matter here.
  net::Task<net::ErrorCode> try_rare_commands() {
    const std::string key = settings_.prefix + ":probe";
    for (const std::string& ask :
         {command({"LLEN", key}), command({"LINDEX", key, "0"}), command({"LSET", key, "0", ""}),
          command({"LREM", key, "0", ""}), command({"LTRIM", key, "0", "-1"}),
          command({"ZREMRANGEBYSCORE", key, "0", "0"})}) {
      const net::ErrorCode ec = co_await redis_.ask(ask);
      if (ec) co_return ec;
      const Reply& reply = redis_.reply();
      if (reply.kind == Reply::Kind::Error && reply.text.starts_with("NOPERM"))
        found_.obstacles.push_back(advised(reply.text));
    }
    co_return net::ErrorCode();
  }

  net::Task<net::ErrorCode> time_pings() {
    const std::string ping = command({"PING"});
    std::vector<base::Duration> took;
    for (unsigned i = 0; i <= kPings; ++i) {  // one PING more than kPings: the first is not counted
      const auto began = Steady::now();
      const net::ErrorCode ec = co_await redis_.ask(ping);
      if (ec) co_return ec;
      if (denied("PING")) co_return net::ErrorCode();
      if (i > 0) took.push_back(std::chrono::ceil<base::Duration>(Steady::now() - began));
    }
    std::sort(took.begin(), took.end());
    found_.round_trips = RoundTrips{took[took.size() / 2], took.back(), kPings};
    co_return net::ErrorCode();
  }

  // Compares Redis's clock with this host's clock. Redis reads its clock at some time between the sending of
  // TIME and the arrival of its reply. So the middle of the round trip differs from that time by at most half
  // of the round trip. The shortest of several round trips gives the most precise result.
  net::Task<net::ErrorCode> compare_clocks() {
    const std::string ask = command({"TIME"});
    auto shortest = base::kForever;
    for (unsigned i = 0; i < kLooksAtTheClock; ++i) {
      const auto local = local_time();
      const auto began = Steady::now();
      const net::ErrorCode ec = co_await redis_.ask(ask);
      const auto took = std::chrono::ceil<base::Duration>(Steady::now() - began);
      if (ec) co_return ec;
      if (denied("TIME")) break;
      const auto theirs = instant_in(redis_.reply());
      if (!theirs || took >= shortest) continue;
      shortest = took;
      const base::Duration half((took.count() + 1) / 2);
      // one microsecond more, because half of the round trip was rounded
      found_.clock = ClockDifference{*theirs - (local + half), half + base::Duration(1)};
    }
    co_return net::ErrorCode();
  }

  // Returns true if the last reply is an error, and adds the error to Inspection::denied.
  bool denied(const char* what) {
    const Reply& reply = redis_.reply();
    if (reply.kind != Reply::Kind::Error) return false;
    found_.denied.push_back(std::string(what) + ": " + readable(reply.text));
    return true;
  }

  const RedisSettings& settings_;
  Inspection& found_;
  std::shared_ptr<TlsClient> tls_;        // null: no TLS
  std::unique_ptr<Sentinels> sentinels_;  // null: no Sentinels are configured
  RequestReply redis_;
};

net::Task<void> look(net::Executor executor, const RedisSettings& settings, bool shares_secret,
                     Inspection& found) {
  Inspector inspector(executor, settings, found);
  (void)co_await inspector.look();
  if (!shares_secret || !found.unreachable.empty()) co_return;
  auto looking = SharedSecret::read(executor, settings, found.address);
  found.secret = co_await looking;
}

// Runs the loop until the task has ended.
void run(net::asio::io_context& loop, net::Task<void> task) {
  net::spawn(loop.get_executor(), std::move(task), [](const std::exception_ptr&) {});
  loop.restart();
  loop.run();
}

}  // namespace

ServerFacts read_info(std::string_view info) {
  ServerFacts facts;
  const auto valkey = line_of(info, "valkey_version");
  facts.product = valkey.empty() ? "Redis" : "Valkey";
  facts.version = valkey.empty() ? line_of(info, "redis_version") : valkey;
  facts.role = line_of(info, "role");
  facts.replicas = number_in<unsigned>(line_of(info, "connected_slaves"));
  facts.eviction = line_of(info, "maxmemory_policy");
  facts.max_memory = number_in<std::uint64_t>(line_of(info, "maxmemory"));
  facts.used_memory = number_in<std::uint64_t>(line_of(info, "used_memory"));
  facts.in_cluster = line_of(info, "cluster_enabled") == "1";
  return facts;
}

bool is_recent(const ServerFacts& facts) noexcept {
  if (facts.product == "Valkey") return true;
  std::pair<int, int> version{};
  const char* const end = facts.version.data() + facts.version.size();
  const auto major = std::from_chars(facts.version.data(), end, version.first);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return false;
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  return minor.ec == std::errc{} && version >= kOldest;
}

Inspection inspect(const RedisSettings& settings, bool shares_secret) {
  Inspection found;
  if (settings.topology != Topology::Sentinel) found.address = settings.address;
  if (settings.topology == Topology::Cluster && !settings.nodes.empty())
    found.address = settings.nodes.front();
  net::asio::io_context loop{1};
  run(loop, look(loop.get_executor(), settings, shares_secret, found));
  if (!found.unreachable.empty()) return found;
  for (auto& other : found.others) {
    RedisSettings alone = settings;
    alone.nodes = {other.address};
    run(loop, look(loop.get_executor(), alone, false, other));
    other.others.clear();  // the `others` of this node are the same masters again
  }
  try_operations(loop, settings, found);
  return found;
}

}  // namespace weir::redis
