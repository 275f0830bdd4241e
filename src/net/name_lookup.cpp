#include "weir/net/name_lookup.hpp"

#include <netdb.h>
#include <sys/socket.h>

namespace weir::net {

struct NameLookup::Query {
  explicit Query(const base::Endpoint& address) : host(address.host), port(std::to_string(address.port)) {
    hints.ai_socktype = SOCK_STREAM;
    block.ar_name = host.c_str();
    block.ar_service = port.c_str();
    block.ar_request = &hints;
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query() {
    if (block.ar_result != nullptr) ::freeaddrinfo(block.ar_result);
  }

  const std::string host;
  const std::string port;
  addrinfo hints{};
  gaicb block{};
};

NameLookup::NameLookup() noexcept = default;

// A running look-up cannot be cancelled, and writes its result to the Query object when it ends. So the
// destructor does not free the Query of a running look-up.
NameLookup::~NameLookup() {
  if (query_ && ::gai_cancel(&query_->block) == EAI_NOTCANCELED) (void)query_.release();
}

void NameLookup::begin(const base::Endpoint& address) {
  if (is_under_way()) return;
  query_ = std::make_unique<Query>(address);
  gaicb* list[] = {&query_->block};
  const int outcome = ::getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr);
  if (outcome == 0) return;
  fault_ = ::gai_strerror(outcome);
  query_.reset();
}

bool NameLookup::is_under_way() {
  if (!query_) return false;
  const int outcome = ::gai_error(&query_->block);
  if (outcome == EAI_INPROGRESS) return true;
  take(*query_, outcome);
  query_.reset();
  return false;
}

void NameLookup::take(Query& query, int outcome) {
  fault_.clear();
  if (outcome != 0) {
    fault_ = ::gai_strerror(outcome);
    return;
  }
  known_.clear();
  for (const auto* found = query.block.ar_result; found != nullptr; found = found->ai_next)
    known_.emplace_back(found->ai_addr, static_cast<std::size_t>(found->ai_addrlen));
}

}  // namespace weir::net
