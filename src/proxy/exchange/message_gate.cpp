#include "proxy/exchange/message_gate.hpp"

#include "proxy/exchange/exchange_buffers.hpp"

#include "weir/net/use_task.hpp"

#include <algorithm>

namespace weir::proxy {

namespace {

constexpr base::Duration kLongestWait = std::chrono::seconds{1};

}  // namespace

std::unique_ptr<MessageGate> MessageGate::make(Worker& worker, const ExchangeBuffers& buffers,
                                               Sender sender) {
  if (!MessageLimits::would_count(buffers, sender)) return nullptr;
  return std::make_unique<MessageGate>(worker, buffers, sender);
}

std::size_t MessageGate::admit(std::string_view octets) {
  std::size_t admitted = 0;
  while (admitted < octets.size() && !refuses_) {
    if (scanner_.at_boundary()) {
      const auto verdict = limits_.ask();
      wait_ = std::min(verdict.wait, kLongestWait);
      refuses_ = verdict.closes;
      if (!verdict.admitted) break;
    }
    admitted += scanner_.take(octets.substr(admitted));
  }
  return admitted;
}

net::Task<net::ErrorCode> MessageGate::hold() {
  net::ErrorCode ec;
  pause_.expires_after(wait_);
  co_await pause_.async_wait(net::use_task(ec));
  co_return ec;
}

}  // namespace weir::proxy
