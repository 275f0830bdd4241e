#include "cli/import/read/read_scope.hpp"

#include "cli/import/read/read_fields.hpp"
#include "cli/import/syntax/nginx_values.hpp"

#include "weir/base/ip_address.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

namespace weir::cli::nginx {

namespace {

std::string first_word(const Directive& directive) {
  return directive.arguments.empty() ? std::string() : directive.arguments.front();
}

bool is_on(const Directive& directive) {
  return first_word(directive) == "on";
}

void not_understood(const Directive& directive, Notes& notes) {
  notes.add(directive, "found \"" + first_word(directive) + "\", which weir import does not understand");
}

void read_status(const Directive& directive, unsigned& status, Notes& notes) {
  const auto number = parse_number(first_word(directive));
  if (number && *number >= 400 && *number <= 599)
    status = static_cast<unsigned>(*number);
  else
    not_understood(directive, notes);
}

// Returns true if this value of the field Host is the host that the client requested.
bool is_client_host(std::string_view value) {
  return value == "$host" || value == "${host}" || value == "$http_host" || value.starts_with("$host:") ||
         value.starts_with("${host}:");
}

// Returns true if the directive may make nginx refuse requests. Judges by the beginning of the directive's
// name. So unknown directives count too: weir must not admit a request that nginx would refuse.
bool is_guard(std::string_view name) {
  constexpr auto kHelpers = std::to_array<std::string_view>(
      {"auth_basic_user_file", "auth_request_set", "auth_delay", "auth_jwt_key_file", "auth_jwt_key_request",
       "auth_jwt_key_cache", "auth_jwt_header_set", "auth_jwt_claim_set", "auth_jwt_leeway", "auth_jwt_type",
       "access_by_lua_no_postpone", "rewrite_by_lua_no_postpone"});
  constexpr auto kOthers =
      std::to_array<std::string_view>({"modsecurity", "js_access", "app_protect_enable", "SecRulesEnabled"});
  constexpr auto kPhases = std::to_array<std::string_view>(
      {"auth_", "access_by_", "rewrite_by_", "server_rewrite_by_", "precontent_by_"});
  const bool is_helper = std::find(kHelpers.begin(), kHelpers.end(), name) != kHelpers.end();
  const bool is_other = std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
  return is_other || (!is_helper && std::any_of(kPhases.begin(), kPhases.end(), [&](std::string_view phase) {
           return name.starts_with(phase);
         }));
}

// Returns true for a condition that tests whether a certain file exists, such as (-f /etc/maintenance). Such
// an `if` switches a server off for everybody.
bool tests_a_file(const Directive& condition) {
  constexpr std::string_view kFolder = "$document_root";
  std::string words;
  for (const auto& word : condition.arguments) words += word;
  if (const auto at = words.find(kFolder); at != std::string::npos) words.erase(at, kFolder.size());
  return words.starts_with("(-") && words.find('$') == std::string::npos;
}

// Returns true for an `if` whose block refuses requests. weir import does not translate conditions, so weir
// must refuse all requests that nginx may refuse.
bool is_refusing_if(const Directive& directive) {
  constexpr std::uint64_t kFirstError = 400;
  return directive.name == "if" && !tests_a_file(directive) &&
         std::any_of(directive.block.begin(), directive.block.end(), [](const Directive& inner) {
           const auto code = inner.name == "return" ? parse_number(first_word(inner)) : std::nullopt;
           return (code && *code >= kFirstError) || is_guard(inner.name);
         });
}

}  // namespace

std::string absolute(const ImportState& state, const std::string& file) {
  return (std::filesystem::path(state.folder) / file).lexically_normal().string();
}

std::string block_of_addresses(const std::string& text) {
  if (base::Cidr::parse(text)) return text;
  const auto slash = text.find('/');
  const auto address = base::IpAddress::parse(text.substr(0, slash));
  const auto bits = slash == std::string::npos ? std::nullopt : parse_number(text.substr(slash + 1));
  if (!address || !bits || *bits > (address->is_v4() ? 32u : 128u)) return {};
  const auto whole = static_cast<int>(*bits) + (address->is_v4() ? 96 : 0);
  return address->masked(whole).to_string() + "/" + std::to_string(*bits);
}

bool ScopeReader::read(const Directive& directive) {
  return read_limit(directive) || read_access(directive) || read_answer(directive) || read_guard(directive) ||
         read_header(directive) || read_real_ip(directive) || read_tuning(directive) || read_retry(directive);
}

bool ScopeReader::read_limit(const Directive& directive) {
  const auto& name = directive.name;
  auto& notes = state_.notes;
  if (name == "limit_req")
    read_limit_req(directive);
  else if (name == "limit_conn")
    read_limit_conn(directive);
  else if (name == "limit_req_status")
    read_status(directive, scope_.request_status, notes);
  else if (name == "limit_conn_status")
    read_status(directive, scope_.connection_status, notes);
  else if (name == "limit_req_dry_run")
    scope_.request_dry_run = is_on(directive);
  else if (name == "limit_conn_dry_run")
    scope_.connection_dry_run = is_on(directive);
  else
    return false;
  return true;
}

void ScopeReader::read_limit_req(const Directive& directive) {
  Limit limit{.position = directive.position, .zone = {}};
  std::optional<std::uint64_t> delay = 0;
  for (const auto& word : directive.arguments) {
    if (const auto zone = after(word, "zone=")) limit.zone = *zone;
    if (const auto burst = after(word, "burst=")) limit.number = parse_number(*burst).value_or(0);
    if (word == "nodelay") delay = std::nullopt;
    if (const auto number = after(word, "delay=")) delay = parse_number(*number).value_or(0);
  }
  if (!delay || *delay > 0 || limit.number == 0) limit.over = Over::Refuse;
  if (delay && *delay > 0 && *delay < limit.number)
    state_.notes.add(directive, "delay=" + std::to_string(*delay) +
                                    ": no equal; weir admits and refuses the same requests, and delays none");
  if (first("limit_req")) scope_.requests.clear();
  scope_.requests.push_back(std::move(limit));
}

void ScopeReader::read_limit_conn(const Directive& directive) {
  const auto& words = directive.arguments;
  const auto number = words.size() == 2 ? parse_number(words[1]) : std::nullopt;
  if (!number || *number == 0) return not_understood(directive, state_.notes);
  if (first("limit_conn")) scope_.connections.clear();
  scope_.connections.push_back({.position = directive.position,
                                .connections = true,
                                .zone = words[0],
                                .number = *number,
                                .over = Over::Refuse});
}

bool ScopeReader::read_access(const Directive& directive) {
  if (directive.name != "allow" && directive.name != "deny") return false;
  if (first("access")) {
    scope_.access.clear();
    scope_.unix_peers = PeerAccess::Open;
  }
  const auto word = first_word(directive);
  const bool all = word == "all";
  if ((all || word == "unix:") && scope_.unix_peers == PeerAccess::Open)
    scope_.unix_peers = directive.name == "allow" ? PeerAccess::Allowed
                        : all                     ? PeerAccess::Open
                                                  : PeerAccess::Denied;
  if (word == "unix:") return true;
  auto block = all ? std::string() : block_of_addresses(word);
  if (!all && block.empty())
    state_.notes.add(directive, "no equal for \"" + word + "\"");
  else
    scope_.access.push_back({directive.name == "allow", std::move(block)});
  return true;
}

bool ScopeReader::read_answer(const Directive& directive) {
  if (directive.name == "default_type") {
    if (first_word(directive).find("${") == std::string::npos)
      scope_.content_type = first_word(directive);
    else
      state_.notes.add(directive, "no equal for \"${\"; weir answers with " + scope_.content_type);
    return true;
  }
  if (directive.name != "client_max_body_size") return false;
  const auto size = parse_size(first_word(directive));
  if (!size)
    not_understood(directive, state_.notes);
  else
    scope_.max_body = *size == 0 ? std::nullopt : size;
  return true;
}

bool ScopeReader::read_guard(const Directive& directive) {
  if (is_refusing_if(directive)) {
    scope_.guards.insert(directive.name);
    state_.notes.add(directive,
                     "no equal for its condition; weir answers 403 there, because nginx may refuse requests. "
                     "weir: a [[route]] with match and respond = { status = … }");
    return true;
  }
  if (!is_guard(directive.name)) return false;
  if (first_word(directive) == "off")
    scope_.guards.erase(directive.name);
  else
    scope_.guards.insert(directive.name);
  if (scope_.guards.contains(directive.name))
    state_.notes.add(directive,
                     std::string("no equal; weir answers 403 there, so that nobody passes unasked") +
                         (directive.name == "auth_jwt" ? ". weir: [client.jwt]" : ""));
  return true;
}

bool ScopeReader::read_real_ip(const Directive& directive) {
  auto& real_ip = scope_.real_ip;
  const auto word = first_word(directive);
  if (directive.name == "real_ip_header") {
    real_ip.header = word;
  } else if (directive.name == "real_ip_recursive") {
    real_ip.recursive = is_on(directive);
  } else if (directive.name == "set_real_ip_from") {
    if (first("set_real_ip_from")) {
      real_ip.trusted.clear();
      real_ip.complete = true;
      real_ip.position = directive.position;
    }
    const auto block = word == "unix:" ? word : block_of_addresses(word);
    if (block.empty()) {
      real_ip.complete = false;
      state_.notes.add(directive, word + ": no equal; weir takes addresses and blocks");
    } else if (std::find(real_ip.trusted.begin(), real_ip.trusted.end(), block) == real_ip.trusted.end()) {
      real_ip.trusted.push_back(block);
    }
  } else {
    return false;
  }
  return true;
}

bool ScopeReader::read_tuning(const Directive& directive) {
  const auto name = after(directive.name, "proxy_").value_or(after(directive.name, "grpc_").value_or(""));
  auto& tuning = scope_.tuning;
  const auto word = first_word(directive);
  if (name == "connect_timeout" || name == "read_timeout") {
    const auto time = parse_time(word);
    if (!time || time->count() == 0)
      not_understood(directive, state_.notes);
    else
      (name == "connect_timeout" ? tuning.connect : tuning.response) = time;
    return true;
  }
  if (name == "ssl_verify")
    tuning.verify = is_on(directive);
  else if (name == "ssl_name" && word.find('$') == std::string::npos)
    tuning.name = word;
  else if (name == "ssl_trusted_certificate")
    tuning.ca = absolute(state_, word);
  else if (name == "ssl_certificate")
    tuning.cert = absolute(state_, word);
  else if (name == "ssl_certificate_key")
    tuning.key = absolute(state_, word);
  else
    return false;
  return true;
}

bool ScopeReader::read_header(const Directive& directive) {
  const auto name = after(directive.name, "proxy_").value_or(after(directive.name, "grpc_").value_or(""));
  const bool sets = name == "set_header";
  const bool hides = name == "hide_header";
  const bool adds = directive.name == "add_header";
  if (!sets && !hides && !adds) return false;
  if (directive.arguments.size() < (hides ? 1U : 2U)) {
    not_understood(directive, state_.notes);
  } else if (hides) {
    if (first("hide_header")) scope_.response.remove.clear();
    read_hidden_field(directive, scope_.response, state_.notes);
  } else if (adds) {
    if (first("add_header")) scope_.response.add.clear();
    read_response_field(directive, scope_.response, state_.notes);
  } else {
    read_set_header(directive);
  }
  return true;
}

void ScopeReader::read_set_header(const Directive& directive) {
  if (first("set_header")) {
    scope_.passes_host = false;
    scope_.request = {};
  }
  if (is_same_field(directive.arguments[0], "Host") && is_client_host(directive.arguments[1]))
    scope_.passes_host = true;
  else
    read_request_field(directive, scope_.request, state_.notes);
}

bool ScopeReader::read_retry(const Directive& directive) {
  auto& tuning = scope_.tuning;
  if (directive.name == "proxy_next_upstream_tries") {
    const auto number = parse_number(first_word(directive));
    if (number && *number >= 1 && *number <= 64)
      tuning.attempts = std::to_string(*number);
    else
      not_understood(directive, state_.notes);
    return true;
  }
  if (directive.name != "proxy_next_upstream") return false;
  tuning.retry_on.clear();
  for (const auto& word : directive.arguments) {
    std::string kind;
    if (word == "off")
      tuning.attempts = "1";
    else if (word == "error" || word == "invalid_header")
      kind = "broken";
    else if (word == "timeout")
      kind = "late";
    else if (const auto status = after(word, "http_"))
      kind = *status;
    else
      state_.notes.add(directive, word + ": no equal");
    auto& kinds = tuning.retry_on;
    if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
  }
  return true;
}

}  // namespace weir::cli::nginx
