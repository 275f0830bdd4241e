#include "cli/import/read/notes.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace weir::cli::nginx {

namespace {

// Directives that have no meaning for weir, or that request what weir always does.
constexpr std::array kNeedless = std::to_array<std::string_view>({"user",
                                                                  "pid",
                                                                  "daemon",
                                                                  "master_process",
                                                                  "events",
                                                                  "env",
                                                                  "load_module",
                                                                  "lock_file",
                                                                  "pcre_jit",
                                                                  "worker_rlimit_nofile",
                                                                  "worker_rlimit_core",
                                                                  "worker_cpu_affinity",
                                                                  "worker_priority",
                                                                  "sendfile",
                                                                  "sendfile_max_chunk",
                                                                  "tcp_nopush",
                                                                  "tcp_nodelay",
                                                                  "aio",
                                                                  "directio",
                                                                  "types",
                                                                  "types_hash_max_size",
                                                                  "types_hash_bucket_size",
                                                                  "server_names_hash_bucket_size",
                                                                  "server_names_hash_max_size",
                                                                  "variables_hash_max_size",
                                                                  "variables_hash_bucket_size",
                                                                  "map_hash_max_size",
                                                                  "map_hash_bucket_size",
                                                                  "server_tokens",
                                                                  "log_format",
                                                                  "log_not_found",
                                                                  "open_file_cache",
                                                                  "open_file_cache_valid",
                                                                  "open_file_cache_errors",
                                                                  "open_file_cache_min_uses",
                                                                  "proxy_http_version",
                                                                  "proxy_buffering",
                                                                  "proxy_request_buffering",
                                                                  "proxy_buffers",
                                                                  "proxy_buffer_size",
                                                                  "proxy_busy_buffers_size",
                                                                  "proxy_headers_hash_max_size",
                                                                  "proxy_headers_hash_bucket_size",
                                                                  "proxy_temp_path",
                                                                  "proxy_max_temp_file_size",
                                                                  "proxy_temp_file_write_size",
                                                                  "proxy_socket_keepalive",
                                                                  "client_body_buffer_size",
                                                                  "client_header_buffer_size",
                                                                  "client_body_temp_path",
                                                                  "client_body_in_single_buffer",
                                                                  "connection_pool_size",
                                                                  "request_pool_size",
                                                                  "output_buffers",
                                                                  "postpone_output",
                                                                  "reset_timedout_connection",
                                                                  "keepalive_requests",
                                                                  "keepalive_disable",
                                                                  "keepalive_time",
                                                                  "ssl_session_cache",
                                                                  "ssl_session_timeout",
                                                                  "ssl_session_tickets",
                                                                  "ssl_session_ticket_key",
                                                                  "ssl_prefer_server_ciphers",
                                                                  "ssl_buffer_size",
                                                                  "ssl_dhparam",
                                                                  "ssl_stapling",
                                                                  "ssl_stapling_verify",
                                                                  "resolver",
                                                                  "resolver_timeout",
                                                                  "limit_req_log_level",
                                                                  "limit_conn_log_level",
                                                                  "charset",
                                                                  "http2_chunk_size",
                                                                  "http2_body_preread_size",
                                                                  "http2_recv_buffer_size",
                                                                  "zone",
                                                                  "index",
                                                                  "recursive_error_pages",
                                                                  "port_in_redirect",
                                                                  "server_name_in_redirect",
                                                                  "absolute_redirect",
                                                                  "proxy_ssl_session_reuse",
                                                                  "proxy_ssl_server_name",
                                                                  "break"});

struct Hint {
  std::string_view directive, text;
};

// Directives that weir import does not translate, each with a text for the report. The text says which keys
// of weir to use instead, or that weir has no equal.
constexpr std::array kHints = std::to_array<Hint>(
    {{"proxy_redirect", "no equal; weir forwards Location of the servers as it is"},
     {"rewrite",
      "not imported; weir forwards the path as it came. weir: rewrite = { pattern = \"…\", to = \"…\" } of a "
      "[[route]], or respond.location for redirects"},
     {"proxy_pass_request_headers", "no equal; weir forwards the header fields of requests"},
     {"proxy_pass_request_body", "no equal; weir forwards the body of requests"},
     {"merge_slashes", "no equal; weir compares paths with single slashes"},
     {"root", "no equal; weir serves no files"},
     {"ssl_verify_depth", "no equal; weir accepts a chain of any usual length"},
     {"proxy_ssl_verify_depth", "no equal; weir accepts a chain of any usual length"},
     {"grpc_ssl_verify_depth", "no equal; weir accepts a chain of any usual length"},
     {"proxy_cookie_path", "no equal"},
     {"limit_rate", "not imported; weir: bandwidth = \"…\" on a rule"},
     {"limit_rate_after", "no equal; weir: bandwidth = \"…\" on a rule holds from the first byte"},
     {"map", "not imported; weir: conditions in match, or [client] keys and tiers"},
     {"geo", "not imported; weir: match = { ip = [\"…\"] } of a rule"},
     {"split_clients", "no equal"},
     {"error_log", "not imported; weir logs to standard error, from [log] level on"},
     {"error_page", "no equal; weir: body and content_type of a rule for its refusals"},
     {"try_files", "no equal; weir serves no files"},
     {"if", "no equal; its block is left out. weir: a [[route]] with match"},
     {"proxy_cache", "no equal; weir caches nothing"},
     {"stub_status", "not imported; weir: /metrics of the admin listener"},
     {"stream", "no equal; its block is left out. weir proxies HTTP only"},
     {"mail", "no equal; its block is left out. weir proxies HTTP only"},
     {"ssl_ciphers", "no equal; weir uses OpenSSL's choice for min_version"},
     {"ssl_conf_command", "no equal"},
     {"proxy_next_upstream_timeout", "not imported; weir: timeouts.total of the upstream"},
     {"proxy_send_timeout", "no equal; weir: timeouts.response holds for the whole answer"},
     {"health_check", "not imported; weir: health of the upstream"},
     {"http2_max_concurrent_streams", "not imported; weir: http2.max_streams of the listener"}});

}  // namespace

void Notes::add(const Directive& directive, std::string text) {
  add(directive.position, directive.name, std::move(text));
}

void Notes::add(const Position& position, std::string name, std::string text) {
  const auto file = position.file ? *position.file : std::string();
  if (std::find(files_.begin(), files_.end(), file) == files_.end()) files_.push_back(file);
  notes_.push_back({position, std::move(name), std::move(text)});
}

void Notes::add_untranslated(const Directive& directive) {
  if (std::find(kNeedless.begin(), kNeedless.end(), directive.name) != kNeedless.end()) return;
  if (directive.name == "proxy_redirect" && directive.arguments == std::vector<std::string>{"off"}) return;
  constexpr std::array<std::string_view, 3> kOn{"proxy_pass_request_headers", "proxy_pass_request_body",
                                                "merge_slashes"};
  const bool is_on = !directive.arguments.empty() && directive.arguments[0] == "on";
  if (is_on && std::find(kOn.begin(), kOn.end(), directive.name) != kOn.end())
    return;  // weir always does what `on` means
  const auto hint = std::find_if(kHints.begin(), kHints.end(),
                                 [&](const Hint& known) { return known.directive == directive.name; });
  add(directive, hint != kHints.end() ? std::string(hint->text) : "no equal");
}

std::vector<Note> Notes::sorted() const {
  const auto order = [this](const Note& note) {
    const auto file = note.position.file ? *note.position.file : std::string();
    return std::pair(std::find(files_.begin(), files_.end(), file) - files_.begin(), note.position.line);
  };
  auto all = notes_;
  std::stable_sort(all.begin(), all.end(), [&](const Note& a, const Note& b) { return order(a) < order(b); });
  std::vector<Note> once;
  for (auto& note : all)
    if (std::none_of(once.begin(), once.end(), [&](const Note& n) { return n.line() == note.line(); }))
      once.push_back(std::move(note));
  return once;
}

}  // namespace weir::cli::nginx
