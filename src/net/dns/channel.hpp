// Runs one c-ares channel on an event loop: waits for its sockets and for its time-outs.
//
// A look-up owns the channel. A handler of the channel on the event loop also owns it while the handler runs.
#pragma once

#include "weir/base/result.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/dns_lookup.hpp"

#include <map>
#include <memory>

#include <ares.h>
#include <boost/asio/posix/basic_stream_descriptor.hpp>

namespace weir::net {

class DnsChannel : public std::enable_shared_from_this<DnsChannel> {
 public:
  explicit DnsChannel(asio::io_context& context);
  // Ends all queries; their callbacks get ARES_EDESTRUCTION.
  ~DnsChannel();
  DnsChannel(const DnsChannel&) = delete;
  DnsChannel& operator=(const DnsChannel&) = delete;

  // Must be called first. Reads the system's files. Returns ARES_SUCCESS, or a status of c-ares.
  [[nodiscard]] int open(const NameServers& name_servers);
  [[nodiscard]] ares_channel handle() const noexcept { return channel_; }
  // Waits for the channel's sockets and time-outs. Must be called after a query has been started on the
  // handle.
  void wait();
  // Returns true if a query was sent to a name server.
  [[nodiscard]] bool has_asked() const noexcept { return has_asked_; }

 private:
  // A socket that c-ares owns, and what c-ares waits for.
  struct Watch {
    explicit Watch(asio::io_context& context) : descriptor(context.get_executor()) {}
    asio::posix::basic_stream_descriptor<Executor> descriptor;
    bool reads = false, writes = false;  // c-ares waits until it can read (write)
    // a handler on the event loop waits until the socket is readable (writable)
    bool awaits_reading = false, awaits_writing = false;
  };
  static void on_socket(void* channel, ares_socket_t fd, int reads, int writes) noexcept;
  void change(ares_socket_t fd, bool reads, bool writes);
  void wait_for(ares_socket_t fd, const std::shared_ptr<Watch>& watch);
  void process(ares_socket_t readable, ares_socket_t writable);

  asio::io_context& context_;
  Timer timer_;
  ares_channel channel_ = nullptr;
  bool has_asked_ = false;
  // shared_ptr, because handlers on the event loop have a weak_ptr to the watch.
  std::map<ares_socket_t, std::shared_ptr<Watch>> watches_;
};

}  // namespace weir::net
