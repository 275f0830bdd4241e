// Fuzzes the messages that gRPC clients send to a listener with serves = "rls": calls, health checks and
// reflection. Reading them must not fail but by an error, and all texts must lie within the message.
#include "fuzz/input.hpp"

#include "weir/ask/grpc_framing.hpp"
#include "weir/ask/grpc_services.hpp"
#include "weir/ask/rls.hpp"

#include <string_view>

namespace weir::fuzz {
namespace {

bool lies_in(std::string_view message, std::string_view text) {
  return text.empty() ||
         (text.data() >= message.data() && text.data() + text.size() <= message.data() + message.size());
}

void read(std::string_view message) {
  if (const auto call = ask::read_rls_call(message)) {
    require(!call->descriptors.empty() && call->descriptors.size() <= ask::kMostDescriptors,
            "few descriptors");
    require(lies_in(message, call->domain), "the domain is in the message");
    require(!call->hits || (*call->hits >= 1 && *call->hits <= limit::kMaxCost), "a possible cost");
    for (const auto& descriptor : call->descriptors)
      for (const auto& entry : descriptor.entries)
        require(!entry.key.empty() && lies_in(message, entry.key) && lies_in(message, entry.value),
                "entries");
  }
  if (const auto service = ask::health_service(message)) require(lies_in(message, *service), "the service");
  (void)ask::proto_files().answer(message);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  std::string_view octets(reinterpret_cast<const char*>(bytes), size);
  fuzz::read(octets);
  for (auto message = ask::first_grpc_message(octets, 1 << 16);
       message.state == ask::GrpcMessage::State::Whole; message = ask::first_grpc_message(octets, 1 << 16)) {
    fuzz::require(message.consumed == message.text.size() + 5, "framing has five octets");
    fuzz::read(message.text);
    octets.remove_prefix(message.consumed);
  }
  return 0;
}
