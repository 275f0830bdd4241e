#include "weir/net/service_lookup.hpp"

#include "net/dns/channel.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace weir::net {

namespace {

// The largest number of targets of one service that are looked up at a time. It is smaller than kMostLookups,
// because several services may be looked up at the same time.
constexpr std::size_t kMostTargets = 4;
constexpr int kAskedClass = 1, kAskedType = 33;  // Internet, SRV

}  // namespace

struct ServiceLookup::Callback {
  // Catches exceptions, because they must not pass through c-ares. If memory has run out, the look-up never
  // ends, and its owner keeps the servers that it knows.
  static void on_message(void* lookup, int status, int, unsigned char* message, int size) noexcept {
    if (status == ARES_EDESTRUCTION) return;
    try {
      static_cast<ServiceLookup*>(lookup)->take(status, {message, static_cast<std::size_t>(size)});
    } catch (...) {  // NOLINT(bugprone-empty-catch)
    }
  }
};

ServiceLookup::ServiceLookup(asio::io_context& context, const std::string& service, NameServers name_servers,
                             Select select, Done done)
    : context_(context),
      service_(service),
      name_servers_(std::move(name_servers)),
      select_(std::move(select)),
      done_(std::move(done)),
      channel_(std::make_shared<DnsChannel>(context)) {
  if (const int status = channel_->open(name_servers_); status != ARES_SUCCESS) {
    take(status, {});
    return;
  }
  ares_search(channel_->handle(), service_.c_str(), kAskedClass, kAskedType, Callback::on_message, this);
  channel_->wait();
}

ServiceLookup::~ServiceLookup() = default;

void ServiceLookup::take(int status, std::span<const unsigned char> message) {
  const auto fail = [&](const std::string& why) {
    end(base::Error{"cannot resolve \"srv:" + service_ + "\": " + why});
  };
  if (status != ARES_SUCCESS) return fail(ares_strerror(status));
  auto found = parse_service_records(message);
  if (!found) return fail("the answer is malformed");
  answer_.ttl = found->ttl;
  for (auto& record : select_(std::move(found->records))) answer_.targets.push_back({std::move(record), {}});
  if (answer_.targets.empty()) return fail("the answer has no SRV record with a target");
  asio::post(context_, [this, alive = std::weak_ptr(channel_)] {
    if (alive.lock()) look_up_more();
  });
}

void ServiceLookup::look_up_more() {
  for (; next_ < answer_.targets.size() && hosts_.size() < kMostTargets; ++next_) {
    const auto& target = answer_.targets[next_].record.target;
    if (!is_name(target)) {  // some name servers give an IP address as the target
      if (auto numeric = resolve(target)) answer_.targets[next_].addresses = std::move(*numeric);
      continue;
    }
    hosts_.try_emplace(next_, context_, target, name_servers_,
                       [this, at = next_](base::Result<NameAnswer> found) {
                         if (found) answer_.targets[at].addresses = std::move(found->addresses);
                         hosts_.erase(at);
                         look_up_more();
                       });
  }
  if (hosts_.empty()) end(std::move(answer_));
}

// Calls `done_` later, from the event loop, because c-ares or the constructor may be running now.
void ServiceLookup::end(base::Result<ServiceAnswer> answer) {
  asio::post(context_, [this, alive = std::weak_ptr(channel_), said = std::move(answer)]() mutable {
    const auto channel = alive.lock();  // keeps the channel until `done` has destroyed this look-up
    if (!channel) return;
    const auto done = std::move(done_);
    done(std::move(said));
  });
}

std::vector<base::Result<ServiceAnswer>> look_up_services(const std::vector<std::string>& services,
                                                          const NameServers& name_servers,
                                                          const ServiceLookup::Select& select,
                                                          base::Duration longest) {
  std::vector<base::Result<ServiceAnswer>> answers;
  answers.reserve(services.size());
  for (const auto& service : services)
    answers.emplace_back(
        base::Error{"cannot resolve \"srv:" + service + "\": no name server answered in time"});
  asio::io_context context;
  std::map<std::size_t, ServiceLookup> running;  // the look-ups under way, by the index of the service
  std::size_t next = 0;
  const std::function<void()> begin_more = [&] {
    for (; next < services.size() && running.size() < kMostLookups; ++next)
      running.try_emplace(next, context, services[next], name_servers, select,
                          [&, at = next](base::Result<ServiceAnswer> answer) {
                            answers[at] = std::move(answer);
                            running.erase(at);
                            begin_more();
                          });
  };
  begin_more();
  context.run_for(longest);
  return answers;
}

}  // namespace weir::net
