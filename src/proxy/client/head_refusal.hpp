// Answers and logs a request head that is malformed or incomplete. Each object handles one head, and belongs
// to the worker of the connection.
#pragma once

#include "proxy/client/client_peer.hpp"
#include "proxy/client/client_watch.hpp"

#include "weir/http/answer.hpp"
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
  // All arguments must outlive this object. `protocol`: the protocol in the access log; empty: unknown.
  // `bytes`: the part of the head that has arrived. These bytes must not move.
  HeadRefusal(Worker& worker, const ClientPeer& peer, std::string_view bytes,
              std::string_view protocol) noexcept
      : worker_(worker), peer_(peer), bytes_(bytes), protocol_(protocol) {}

  // Counts the fault, and returns the answer to the client. The answer is valid as long as this object.
  [[nodiscard]] http::Answer answer(const http::Fault& fault);
  // Logs the client, the fault, and as much of the head as weir can parse. `sent`: how many octets of the
  // answer were sent.
  void report(const http::Fault& fault, std::size_t sent);

 private:
  Worker& worker_;
  const ClientPeer& peer_;
  const std::string_view bytes_;
  const std::string_view protocol_;
  std::string body_, id_;
};

// Sends the answer to a faulty head on an HTTP/1 connection, and logs the fault.
[[nodiscard]] net::Task<void> refuse_head(Worker& worker, ClientWatch& watch, net::Stream& client,
                                          const ClientPeer& peer, http::Fault fault, std::string_view bytes);

}  // namespace weir::proxy
