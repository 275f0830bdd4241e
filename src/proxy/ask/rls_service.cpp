#include "proxy/ask/rls_service.hpp"

namespace weir::proxy {

net::Task<Ending> serve_rls(AskCall& call) {
  return call.error(501, "this listener serves no method yet");
}

}  // namespace weir::proxy
