// A worker whose listener answers questions, and an asker that is connected to it.
#pragma once

#include "unit/proxy/connected_client.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::proxy {

class Asker : public ConnectedClient {
 public:
  explicit Asker(Configuration configuration, AskSettings settings = {.max_permits = 10})
      : ConnectedClient(std::move(configuration), listener_of(std::move(settings))) {}

  // Sends a call with a body. `lines`: complete header lines.
  std::string post(std::string_view path, std::string_view body, std::string_view lines = {}) {
    return send("POST " + std::string(path) + " HTTP/1.1\r\nHost: weir\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n" + std::string(lines) + "\r\n" + std::string(body));
  }
  std::string decide(std::string_view body) { return post("/v1/decide", body); }

 private:
  static AcceptorSettings listener_of(AskSettings&& settings) {
    const bool http2 = settings.api == AskSettings::Api::Rls;
    return {.tls = {},
            .most_sessions = 10,
            .http2 = std::make_shared<const Http2Settings>(Http2Settings{.prior_knowledge = http2}),
            .ask = std::make_shared<const AskSettings>(std::move(settings))};
  }
};

}  // namespace weir::proxy
