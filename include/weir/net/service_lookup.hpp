// Looks up a service by its SRV records (RFC 2782), and the addresses of the hosts that serve it. Runs on an
// event loop, like DnsLookup.
#pragma once

#include "weir/net/dns_lookup.hpp"

#include <cstdint>
#include <map>
#include <span>

namespace weir::net {

// An SRV record.
struct ServiceRecord {
  base::Endpoint target;       // host name without the final dot, and port
  std::uint16_t priority = 0;  // clients use the records with the smallest number first
  std::uint16_t weight = 0;    // share of the requests among the records of one priority
  friend bool operator==(const ServiceRecord&, const ServiceRecord&) = default;
};

// The SRV records of a name, and how long they are valid.
struct ServiceRecords {
  std::vector<ServiceRecord> records;
  base::Duration ttl{};
};

// Reads the SRV records of a DNS message. Omits records whose target is ".", which say that there is no such
// service. Returns nullopt if the message is malformed.
[[nodiscard]] std::optional<ServiceRecords> parse_service_records(std::span<const unsigned char> message);

// One host of a service. `addresses` is empty if the look-up of the host failed.
struct ServiceTarget {
  ServiceRecord record;
  std::vector<RawEndpoint> addresses;
};

struct ServiceAnswer {
  std::vector<ServiceTarget> targets;
  base::Duration ttl{};  // how long the SRV records are valid
};

// One look-up of a service. The destructor cancels the look-up.
class ServiceLookup {
 public:
  // Called once on the event loop, unless the look-up is destroyed first. May destroy the look-up.
  using Done = std::function<void(base::Result<ServiceAnswer>)>;
  // Receives the records of a service, and returns those whose targets are to be looked up, in order.
  using Select = std::function<std::vector<ServiceRecord>(std::vector<ServiceRecord>)>;

  // `service`: a name such as "_http._tcp.api.internal". `context` must outlive the look-up, and only its
  // thread may use the look-up.
  ServiceLookup(asio::io_context& context, const std::string& service, NameServers name_servers,
                Select select, Done done);
  ~ServiceLookup();
  ServiceLookup(const ServiceLookup&) = delete;
  ServiceLookup& operator=(const ServiceLookup&) = delete;

 private:
  struct Callback;
  void take(int status, std::span<const unsigned char> message);
  void look_up_more();
  void end(base::Result<ServiceAnswer> answer);

  asio::io_context& context_;
  const std::string service_;
  const NameServers name_servers_;
  const Select select_;
  Done done_;
  ServiceAnswer answer_;
  std::size_t next_ = 0;                    // index of the next target to look up
  std::map<std::size_t, DnsLookup> hosts_;  // look-ups under way, by the index of the target
  std::shared_ptr<DnsChannel> channel_;     // shared with the channel's handlers on the event loop
};

// Looks up these services, at most kMostLookups at a time, and returns the answers in the same order. Blocks
// the calling thread, for at most `longest`. Services that have no answer by then get an error.
[[nodiscard]] std::vector<base::Result<ServiceAnswer>> look_up_services(
    const std::vector<std::string>& services, const NameServers& name_servers,
    const ServiceLookup::Select& select, base::Duration longest = kLongestLookups);

}  // namespace weir::net
