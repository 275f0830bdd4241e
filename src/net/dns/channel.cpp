#include "net/dns/channel.hpp"

#include <string>
#include <vector>

namespace weir::net {

namespace {

constexpr int kFirstPatienceInMs = 2'000;  // c-ares doubles this time for the second try
constexpr int kTries = 2;

}  // namespace

DnsChannel::DnsChannel(asio::io_context& context) : context_(context), timer_(context.get_executor()) {}

DnsChannel::~DnsChannel() {
  if (channel_ != nullptr) ares_destroy(channel_);
}

int DnsChannel::open(const NameServers& name_servers) {
  ares_options options{};
  options.timeout = kFirstPatienceInMs;
  options.tries = kTries;
  options.sock_state_cb = on_socket;
  options.sock_state_cb_data = this;
  int mask = ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
  std::string hosts_then_dns = "fb";
  // asks these servers even if /etc/nsswitch.conf says that this host uses no DNS
  if (!name_servers.empty()) {
    options.lookups = hosts_then_dns.data();
    mask |= ARES_OPT_LOOKUPS;
  }
  const int status = ares_init_options(&channel_, &options, mask);
  if (status != ARES_SUCCESS || name_servers.empty()) return status;
  std::string list;
  for (const auto& server : name_servers) list += (list.empty() ? "" : ",") + server.to_string();
  return ares_set_servers_ports_csv(channel_, list.c_str());
}

// Catches exceptions, because they must not pass through c-ares. If memory has run out, the query times out.
void DnsChannel::on_socket(void* channel, ares_socket_t fd, int reads, int writes) noexcept {
  try {
    static_cast<DnsChannel*>(channel)->change(fd, reads != 0, writes != 0);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

// Records what c-ares waits for on the socket. If c-ares waits neither to read nor to write, it is about to
// close the socket, so this function forgets the socket.
void DnsChannel::change(ares_socket_t fd, bool reads, bool writes) {
  const auto found = watches_.find(fd);
  if (!reads && !writes) {
    if (found == watches_.end()) return;
    found->second->descriptor.release();
    watches_.erase(found);
    return;
  }
  has_asked_ = true;
  if (found != watches_.end()) {
    found->second->reads = reads;
    found->second->writes = writes;
    return;
  }
  auto watch = std::make_shared<Watch>(context_);
  watch->reads = reads;
  watch->writes = writes;
  ErrorCode ec;
  watch->descriptor.assign(fd, ec);
  if (!ec) watches_.emplace(fd, std::move(watch));
}

void DnsChannel::wait() {
  for (const auto& [fd, watch] : watches_) wait_for(fd, watch);
  timeval time{};
  const auto* left = ares_timeout(channel_, nullptr, &time);
  if (left == nullptr) {
    timer_.cancel();
    return;
  }
  timer_.expires_after(std::chrono::seconds(left->tv_sec) + std::chrono::microseconds(left->tv_usec));
  timer_.async_wait([self = weak_from_this()](const ErrorCode& ec) {
    const auto channel = self.lock();
    if (!ec && channel) channel->process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
  });
}

void DnsChannel::wait_for(ares_socket_t fd, const std::shared_ptr<Watch>& watch) {
  using Descriptor = asio::posix::descriptor_base;
  const auto handler = [&](bool& awaits, bool reading) {
    awaits = true;
    return [self = weak_from_this(), weak = std::weak_ptr(watch), fd, reading](const ErrorCode& ec) {
      const auto channel = self.lock();
      const auto ready = weak.lock();
      if (ec || !channel || !ready) return;
      (reading ? ready->awaits_reading : ready->awaits_writing) = false;
      channel->process(reading ? fd : ARES_SOCKET_BAD, reading ? ARES_SOCKET_BAD : fd);
    };
  };
  if (watch->reads && !watch->awaits_reading)
    watch->descriptor.async_wait(Descriptor::wait_read, handler(watch->awaits_reading, true));
  if (watch->writes && !watch->awaits_writing)
    watch->descriptor.async_wait(Descriptor::wait_write, handler(watch->awaits_writing, false));
}

void DnsChannel::process(ares_socket_t readable, ares_socket_t writable) {
  ares_process_fd(channel_, readable, writable);
  wait();
}

}  // namespace weir::net
