// The header fields that a route must not change.
#include "config/read/routes/route_parts.hpp"

#include "weir/http/field_names.hpp"

#include <algorithm>
#include <iterator>

namespace weir::config {

namespace {

struct Reserved {
  std::string_view name;  // "NAME", or "PREFIX*"
  std::string_view why;
};

constexpr std::string_view kWhyFraming = "which frames messages or belongs to one connection; remove it";
constexpr std::string_view kWhyHandshake = "which belongs to the handshake of WebSockets; remove it";
constexpr std::string_view kWhyCoding = "which says how the body is coded; remove it";
constexpr std::string_view kWhyForwarding =
    "which weir writes itself; remove it ([client] trusted_proxies says whose value weir keeps)";
constexpr std::string_view kWhyForm =
    "which weir itself changes where a rule reads the answer; write headers.request.remove instead, or "
    "remove it";
constexpr std::string_view kWhyLimits =
    "which weir writes itself; remove it ([server] ratelimit_headers chooses its fields)";
constexpr std::string_view kWhyTarget =
    "which sends clients to another place; write respond.location in a route of its own instead";
constexpr std::string_view kWhyOwn = "which weir writes itself; remove it";

constexpr Reserved kEverywhere[] = {
    {"Connection", kWhyFraming},
    {"Content-Length", kWhyFraming},
    {"Keep-Alive", kWhyFraming},
    {"Proxy-Connection", kWhyFraming},
    {"TE", kWhyFraming},
    {"Trailer", kWhyFraming},
    {"Transfer-Encoding", kWhyFraming},
    {"Upgrade", kWhyFraming},
    {"HTTP2-Settings", kWhyFraming},
    {"Sec-WebSocket-*", kWhyHandshake},
    {"Content-Encoding", kWhyCoding},
    {"Content-Range", kWhyCoding},
};
constexpr Reserved kOfRequests[] = {
    {"Host", "which the upstream decides; write host = \"api.internal\" in the [[upstream]]"},
    {"Expect", kWhyFraming},
    {"X-Forwarded-For", kWhyForwarding},
    {"X-Forwarded-Host", kWhyForwarding},
    {"X-Forwarded-Proto", kWhyForwarding},
    {"Forwarded", kWhyForwarding},
    {"X-Request-ID", kWhyForwarding},
    {"Via", kWhyForwarding},
    {"Max-Forwards", kWhyForwarding},
};
// Fields that a route may remove but not write: kWrittenToServers in requests, kWrittenToClients in answers.
constexpr Reserved kWrittenToServers[] = {
    {"Accept-Encoding", kWhyForm}, {"Range", kWhyForm}, {"If-Range", kWhyForm}};
constexpr Reserved kWrittenToClients[] = {
    {"RateLimit*", kWhyLimits}, {"X-RateLimit-*", kWhyLimits}, {"Retry-After", kWhyOwn},
    {"Date", kWhyOwn},          {"WWW-Authenticate", kWhyOwn}, {"X-Request-ID", kWhyOwn},
    {"grpc-*", kWhyOwn},        {"Location", kWhyTarget},      {"Refresh", kWhyTarget},
};
constexpr Reserved kOfCors[] = {
    {"Access-Control-*", "which weir writes itself because of [cors]; remove it"}};
constexpr Reserved kOfTracing[] = {
    {"traceparent", "which weir writes itself because of [tracing]; remove it"}};
constexpr Reserved kOfRespond[] = {
    {"Content-Type", "which has a key of its own; write respond.content_type instead"},
    {"Location", "which has a key of its own; write respond.location instead"},
};

// Returns true if some field name matches both patterns.
bool names_overlap(std::string_view one, std::string_view other) {
  const auto bare = [](std::string_view pattern) { return pattern.substr(0, pattern.find('*')); };
  return http::FieldNames{one}.contains(bare(other)) || http::FieldNames{other}.contains(bare(one));
}

}  // namespace

std::string_view why_reserved(std::string_view name, EditedMessage message, EditKind kind,
                              const ReadContext& context) {
  std::string_view why;
  const auto look = [&](const auto& reserved) {
    const auto found = std::find_if(std::begin(reserved), std::end(reserved),
                                    [&](const Reserved& each) { return names_overlap(name, each.name); });
    if (why.empty() && found != std::end(reserved)) why = found->why;
  };
  const bool to_server = message == EditedMessage::Request;
  look(kEverywhere);
  if (message == EditedMessage::OwnResponse) look(kOfRespond);
  if (to_server) look(kOfRequests);
  if (to_server && kind != EditKind::Remove) look(kWrittenToServers);
  if (!to_server && kind != EditKind::Remove) look(kWrittenToClients);
  if (!to_server && context.cors) look(kOfCors);
  if (to_server && kind != EditKind::Remove && context.tracing) look(kOfTracing);
  return why;
}

}  // namespace weir::config
