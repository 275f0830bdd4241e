#include "net/dns/channel.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

namespace weir::net {

namespace {

// Returns the shortest TTL of the records in an answer.
base::Duration shortest_ttl(const ares_addrinfo& found) {
  int seconds = std::numeric_limits<int>::max();
  for (const auto* alias = found.cnames; alias != nullptr; alias = alias->next)
    seconds = std::min(seconds, alias->ttl);
  for (const auto* node = found.nodes; node != nullptr; node = node->ai_next)
    seconds = std::min(seconds, node->ai_ttl);
  return std::chrono::seconds(std::max(0, seconds));
}

}  // namespace

struct DnsLookup::Callback {
  // Catches exceptions, because they must not pass through c-ares. If memory has run out, the answer stays
  // the error that the constructor has set.
  static void on_addresses(void* lookup, int status, int, ares_addrinfo* found) noexcept {
    const std::unique_ptr<ares_addrinfo, decltype(&ares_freeaddrinfo)> owner(found, &ares_freeaddrinfo);
    if (status == ARES_EDESTRUCTION) return;
    auto& self = *static_cast<DnsLookup*>(lookup);
    try {
      self.answer_ = answer(self, status, found);
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
    self.ended_.cancel();
  }

  static base::Result<NameAnswer> answer(const DnsLookup& lookup, int status, const ares_addrinfo* found) {
    if (status != ARES_SUCCESS || found == nullptr)
      return base::Error{"cannot resolve \"" + lookup.host_ + "\": " + ares_strerror(status)};
    NameAnswer answer;
    for (const auto* node = found->nodes; node != nullptr; node = node->ai_next)
      answer.addresses.emplace_back(node->ai_addr, static_cast<std::size_t>(node->ai_addrlen));
    if (lookup.channel_->has_asked()) answer.ttl = shortest_ttl(*found);
    return answer;
  }
};

DnsLookup::DnsLookup(asio::io_context& context, const base::Endpoint& name, const NameServers& name_servers,
                     Done done)
    : host_(name.host),
      done_(std::move(done)),
      answer_(base::Error{"cannot resolve \"" + host_ + "\": no memory is left"}),
      channel_(std::make_shared<DnsChannel>(context)),
      ended_(context.get_executor()) {
  ended_.expires_at(Timer::time_point::max());
  ended_.async_wait([this, alive = std::weak_ptr(channel_)](const ErrorCode&) {
    const auto channel = alive.lock();  // keeps the channel until `done` has destroyed this look-up
    if (!channel) return;
    const auto callback = std::move(done_);
    callback(std::move(answer_));
  });
  if (const int status = channel_->open(name_servers); status != ARES_SUCCESS) {
    answer_ = Callback::answer(*this, status, nullptr);
    ended_.cancel();
  } else {
    ares_addrinfo_hints hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = ARES_AI_NUMERICSERV;
    ares_getaddrinfo(channel_->handle(), host_.c_str(), std::to_string(name.port).c_str(), &hints,
                     Callback::on_addresses, this);
    channel_->wait();
  }
}

DnsLookup::~DnsLookup() = default;

std::vector<base::Result<NameAnswer>> look_up_all(const std::vector<base::Endpoint>& addresses,
                                                  const NameServers& name_servers, base::Duration longest) {
  std::vector<base::Result<NameAnswer>> answers;
  answers.reserve(addresses.size());
  for (const auto& address : addresses) {
    if (is_name(address))
      answers.emplace_back(
          base::Error{"cannot resolve \"" + address.host + "\": no name server answered in time"});
    else if (auto found = resolve(address))
      answers.emplace_back(NameAnswer{std::move(*found), std::nullopt});
    else
      answers.emplace_back(found.error());
  }
  asio::io_context context;
  std::map<std::size_t, DnsLookup> running;  // the look-ups under way, by the index of the address
  std::size_t next = 0;
  const std::function<void()> begin_more = [&] {
    for (; next < addresses.size() && running.size() < kMostLookups; ++next) {
      if (!is_name(addresses[next])) continue;
      running.try_emplace(next, context, addresses[next], name_servers,
                          [&, at = next](base::Result<NameAnswer> answer) {
                            answers[at] = std::move(answer);
                            running.erase(at);
                            begin_more();
                          });
    }
  };
  begin_more();
  context.run_for(longest);
  return answers;
}

}  // namespace weir::net
