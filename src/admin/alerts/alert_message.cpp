#include "admin/alerts/alert_message.hpp"

#include "weir/base/hex.hpp"
#include "weir/observe/json_value.hpp"

#include <array>
#include <ctime>

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;
using Change = observe::Surge::Change;

// Returns the time as text such as "2026-02-20T10:00:00Z" (RFC 3339).
std::string written(base::TimePoint at) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(at);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%FT%TZ", &parts)};
}

// Returns the kind of the alert's subject: "rule", "upstream" or "store". The configuration and the messages
// use this word as the key of the subject.
const char* subject_name(AlertOn on) {
  constexpr std::array<const char*, 4> kNames{"rule", "rule", "upstream", "store"};
  return kNames[static_cast<std::size_t>(on)];
}

std::string in_words(const observe::NamedClient& client) {
  return "client " + base::in_hex(client.digest) + " (" + client.text + ")";
}

}  // namespace

std::string title_of(const Alert& alert) {
  return alert.settings.name + (alert.client ? " for " + in_words(*alert.client) : "");
}

std::string message_of(const Alert& alert, const MessageFacts& facts) {
  const auto& settings = alert.settings;
  const bool ended = facts.change == Change::Ended;
  const bool refusals = settings.on == AlertOn::Refusals || settings.on == AlertOn::ClientRefusals;
  const char* const what = refusals ? "refusals" : "failures";
  const std::string above = limit::to_string(settings.surge.above);
  const std::string text = "weir on " + facts.host + ": alert " + settings.name +
                           (ended ? " has ended: " : " is firing: ") + std::to_string(alert.surge.seen()) +
                           " " + what + " of " + (alert.client ? in_words(*alert.client) + " by " : "") +
                           subject_name(settings.on) + " " + settings.subject + ", threshold " + above;
  json::object message{{"alert", settings.name},
                       {"state", ended ? "ended" : "firing"},
                       {"repeated", facts.change == Change::Continues},
                       {subject_name(settings.on), settings.subject}};
  if (alert.client) {
    message["client"] = alert.client->text;
    message["digest"] = base::in_hex(alert.client->digest);
  }
  message[what] = alert.surge.seen();
  message["above"] = above;
  message["since"] = written(alert.surge.since());
  message["at"] = written(facts.at);
  message["host"] = facts.host;
  message["version"] = facts.version;
  message["text"] = text;
  return observe::json_text(message);
}

}  // namespace weir::admin
