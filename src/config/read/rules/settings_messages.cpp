// Reads the limits on messages of WebSockets and gRPC calls.
#include "config/read/settings_sections.hpp"

#include <cstdint>
#include <utility>

namespace weir::config {

namespace {

enum class Over : std::uint8_t { Delay, Close };  // in the order of the schema's choices

// Reports a mistake if the rule takes its key from the body, because weir could not read that key. The
// request that opens a WebSocket has no body, and the body of a gRPC call ends only with its last message.
void check_key(const TableReader& table, const policy::Rule& rule) {
  if (policy::reads_body(rule.key))
    table.mistake(
        "messages",
        "found beside a key of json: or form:, but a WebSocket has no body, and the body of a gRPC call "
        "ends with its messages; expected a key in the head, such as key = [\"user|ip\"]");
}

}  // namespace

void read_messages(const TableReader& table, policy::Rule& rule) {
  const auto rate = table.rate("messages");
  const bool closes = table.choice<Over>("messages_over") == Over::Close;
  const auto direction = table.choice<policy::MessageDirection>("direction");
  for (const auto& [key, given] : {std::pair{"messages_burst", table.has("messages_burst")},
                                   {"messages_over", closes},
                                   {"direction", direction != policy::MessageDirection::Client}})
    if (given && !table.mentions("messages"))
      table.mistake(key, "found without messages; expected messages = \"20/s\" beside it");
  if (!rate) return;
  const auto burst =
      table.has("messages_burst") ? static_cast<std::uint64_t>(table.whole("messages_burst")) : rate->count;
  auto bucket = limit::TokenBucket::make(*rate, burst);
  if (!bucket) return table.mistake("messages", bucket.error().message);
  rule.messages = {*bucket, closes, direction};
  check_key(table, rule);
}

}  // namespace weir::config
