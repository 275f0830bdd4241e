#include "weir/config/settings.hpp"

#include "config/read/settings_sections.hpp"

#include "weir/net/file.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::size_t kLongestName = 128;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text.append(text.empty() ? "" : "\n").append(line);
  return text;
}

}  // namespace

ConfigError::ConfigError(std::vector<std::string> mistakes, std::vector<WatchedFile> files)
    : std::runtime_error(joined(mistakes)), mistakes_(std::move(mistakes)), files_(std::move(files)) {}

Settings parse_settings(std::string_view text, const std::string& file) {
  ConfigErrors mistakes;
  const auto document = read_toml(text, file, mistakes);
  // After a syntax error, all keys are missing. So the error alone is reported, because messages about
  // missing keys would be misleading.
  if (!mistakes.empty() && document.table()->entries.empty()) throw ConfigError(mistakes.lines());
  const TableReader root(&document, 1, "", schema::kRoot, {&file, &mistakes});
  ReadContext context{.file = file, .folder = std::filesystem::path(file).parent_path(), .tiers = {}};
  context.files.push_back(std::filesystem::path(file).lexically_normal().string());
  Settings settings;
  settings.server = read_server(root.table("server", schema::kServer));
  settings.cors = read_cors(root);
  context.cors = root.mentions("cors");
  settings.acme = read_acme(root, context);
  settings.listeners = read_listeners(root, context);
  settings.admin = read_admin(root, context);
  settings.log = read_log(root.table("log", schema::kLog), context);
  settings.tracing = read_tracing(root, context);
  context.tracing = root.mentions("tracing");
  const auto client = root.table("client", schema::kClient);
  const auto state = root.table("state", schema::kState);
  context.lines.insert({{"[client]", client.line()}, {"[state]", state.line()}});
  settings.client = read_client(client, context);
  settings.keys_file = context.keys_file;
  settings.client.bounds = settings.server.bounds;
  if (settings.cors && settings.client.api_key.kind == policy::Source::Kind::Header)
    settings.cors->key_field = settings.client.api_key.name;
  settings.state = read_state(state, context);
  settings.upstreams = read_upstreams(root, context);
  settings.routes = read_routes(root, settings.upstreams, context);
  for (const auto& route : settings.routes) context.routes.push_back(route.name);
  settings.rules = read_rules(root, settings, context);
  settings.alerts = read_alerts(root, settings, context);
  settings.tier_priorities = context.tier_priorities;
  settings.files = std::move(context.watched);
  if (!mistakes.empty()) throw ConfigError(mistakes.lines(), std::move(settings.files));
  settings.warnings = find_warnings(settings, context);
  for (const auto& [whose, line] : context.lines)
    settings.locations.emplace(whose, file + ":" + std::to_string(line));
  if (!asks_for_claims(settings)) settings.client.tokens.reset();
  if (!asks_for_places(settings)) settings.client.geo.reset();
  return settings;
}

Settings load_settings(const std::string& file) {
  const auto stamp = net::stamp_of(file);
  const auto text = net::read_file(file, net::kLargestText, net::UnnamedPipe::Accept);
  if (!text)
    throw ConfigError({file + ": cannot be read: " + text.error().message + "; expected a TOML file"});
  auto settings = parse_settings(*text, file);
  settings.files.push_back({file, stamp});
  return settings;
}

bool holds_something(const std::string& file) {
  const auto text = net::read_file(file);
  return text && !text->empty();
}

bool is_unreadable(const std::string& file) {
  return !file.empty() && !holds_something(file);
}

std::string readable_file(const TableReader& table, std::string_view key, const ReadContext& context,
                          std::string_view kind) {
  if (!table.has(key)) return {};
  auto path = resolve(context, table.text(key));
  const auto text = net::read_file(path);
  const auto expected = "; expected a " + std::string(kind) + " file";
  if (!text)
    table.mistake(key, in_quotes(path) + " cannot be read: " + text.error().message + expected);
  else if (text->empty())
    table.mistake(key, in_quotes(path) + " is empty" + expected);
  return path;
}

std::string resolve(const ReadContext& context, const std::string& path) {
  auto resolved =
      (context.folder / path).lexically_normal().string();  // an absolute path replaces the folder
  context.files.push_back(resolved);
  return resolved;
}

void watch_file(const ReadContext& context, const std::string& file) {
  context.watched.push_back({file, net::stamp_of(file)});
}

bool is_plain_name(std::string_view name) noexcept {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  return !name.empty() && name.size() <= kLongestName && std::all_of(name.begin(), name.end(), plain);
}

bool is_token(std::string_view text) noexcept {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  const auto good = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           kMarks.find(c) != std::string_view::npos;
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), good);
}

}  // namespace weir::config
