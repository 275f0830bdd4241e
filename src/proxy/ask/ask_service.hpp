// Serves one call on a listener that answers questions: checks the token of the asker, then serves the API of
// the listener. Calls have an AskService instead of an Exchange. Lives in the coroutine frame that serves the
// call.
#pragma once

#include "proxy/ask/ask_call.hpp"

#include "weir/net/task.hpp"
#include "weir/proxy/ask_settings.hpp"

#include <memory>
#include <utility>

namespace weir::proxy {

class AskService {
 public:
  // `client` must outlive the service.
  AskService(ClientStream& client, std::shared_ptr<const AskSettings> settings)
      : call_(client, std::move(settings)) {}

  // Returns the buffers for the call's head and for the octets that weir sends.
  [[nodiscard]] ExchangeBuffers& buffers() noexcept { return call_.buffers; }
  // Serves the call. REQUIRES that buffers() contains its head.
  [[nodiscard]] net::Task<Ending> run();
  void cancel() noexcept { call_.cancel(); }  // ends each wait for a decision

 private:
  [[nodiscard]] bool check_token();
  [[nodiscard]] net::Task<Ending> refuse_access();

  AskCall call_;
};

}  // namespace weir::proxy
