// Answers and logs a request head that is malformed or incomplete.
#pragma once

#include "proxy/client/client_peer.hpp"
#include "proxy/client/client_watch.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/task.hpp"
#include "weir/proxy/worker.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::proxy {

class HeadRefusal {
 public:
  // All arguments must outlive this object. `bytes`: the part of the head that arrived; the octets must not
  // move.
  HeadRefusal(Worker& worker, ClientWatch& watch, net::Stream& client, const ClientPeer& peer,
              std::string_view bytes) noexcept
      : worker_(worker), watch_(watch), client_(client), peer_(peer), bytes_(bytes) {}

  // Answers with the status of the fault, counts it and logs it.
  [[nodiscard]] net::Task<void> send(http::Fault fault);

 private:
  void log(const http::Fault& fault, observe::ClientError kind, std::size_t sent, std::string_view id);

  Worker& worker_;
  ClientWatch& watch_;
  net::Stream& client_;
  const ClientPeer& peer_;
  const std::string_view bytes_;
};

}  // namespace weir::proxy
