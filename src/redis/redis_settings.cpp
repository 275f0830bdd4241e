#include "weir/redis/redis_settings.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

namespace weir::redis {

namespace {

constexpr const char* kExpected =
    "write redis:// or rediss://[user:password@]host[:port][/database], or "
    "unix://[user:password@]/path[?db=N]";
constexpr std::string_view kDefaultPort = "6379";
constexpr int kMostDatabase = 1'000'000;

// Returns an error about a Redis URL. The message does not contain the URL, which may contain a password.
base::Error wrong(const char* why) {
  return base::Error{std::string("the Redis URL ") + why + ": " + kExpected};
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

// Decodes percent-encoding (RFC 3986 §2.1). Returns nullopt if a '%' is not followed by two hex digits.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[i + 1]);
    const auto low = hex_digit(text[i + 2]);
    if (!high || !low) return std::nullopt;
    out += static_cast<char>(*high * 16 + *low);
    i += 2;
  }
  return out;
}

// Returns the position of the '@' after user and password. A host or database contains no '@', so this is
// the last '@' of the URL, whatever the password contains. The path of a socket may contain '@'. So for a
// socket, returns the position of the first '@' that is directly before a '/', where the path begins.
std::size_t end_of_user(std::string_view rest, bool is_socket) {
  if (!is_socket) return rest.rfind('@');
  return rest.starts_with('/') ? std::string_view::npos : rest.find("@/");
}

// Removes "user:password@" from the start of `rest` and stores both in `settings`.
bool take_user(std::string_view& rest, bool is_socket, RedisSettings& settings) {
  const auto at = end_of_user(rest, is_socket);
  if (at == std::string_view::npos) return true;
  const auto userinfo = rest.substr(0, at);
  rest.remove_prefix(at + 1);
  const auto colon = userinfo.find(':');
  if (colon == std::string_view::npos) return false;
  const auto user = decoded(userinfo.substr(0, colon));
  const auto password = decoded(userinfo.substr(colon + 1));
  if (!user || !password || password->empty()) return false;
  settings.user = *user;
  settings.password = *password;
  return true;
}

bool read_database(std::string_view digits, RedisSettings& settings) {
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), settings.database);
  return error == std::errc{} && end == digits.data() + digits.size() && settings.database >= 0 &&
         settings.database <= kMostDatabase;
}

bool read_address(const std::string& text, RedisSettings& settings) {
  auto address = base::parse_endpoint(text);
  if (!address) return false;
  settings.address = *std::move(address);
  return settings.address.is_unix() || settings.address.port != 0;
}

base::Result<RedisSettings> parse_unix(std::string_view rest, RedisSettings settings) {
  const auto query = rest.find('?');
  const auto path = rest.substr(0, query);
  if (!path.starts_with('/') || !read_address("unix:" + std::string(path), settings))
    return wrong("has no absolute path to a socket");
  if (query == std::string_view::npos) return settings;
  const auto option = rest.substr(query + 1);
  if (!option.starts_with("db=") || !read_database(option.substr(3), settings))
    return wrong("has something other than db=N after '?'");
  return settings;
}

base::Result<RedisSettings> parse_tcp(std::string_view rest, RedisSettings settings) {
  if (rest.find_first_of("?#") != std::string_view::npos)
    return wrong("has options, but options are not allowed");
  const auto slash = rest.find('/');
  std::string address(rest.substr(0, slash));
  const auto past_brackets = address.find(']');
  if (address.find(':', past_brackets == std::string::npos ? 0 : past_brackets) == std::string::npos)
    address.append(1, ':').append(kDefaultPort);
  if (!read_address(address, settings)) return wrong("has an invalid host or port");
  const auto database = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  if (!database.empty() && !read_database(database, settings))
    return wrong("has a database that is not a number");
  return settings;
}

}  // namespace

base::Duration patience_of(const RedisSettings& settings) noexcept {
  return std::max(settings.timeout, settings.lease_time / 3);
}

base::Result<RedisSettings> parse_redis_url(std::string_view url) {
  constexpr std::string_view kTcp = "redis://";
  constexpr std::string_view kTls = "rediss://";
  constexpr std::string_view kUnix = "unix://";
  const auto scheme = url.substr(0, url.find("//") + 2);
  if (scheme != kTcp && scheme != kTls && scheme != kUnix)
    return wrong("does not begin with redis://, rediss:// or unix://");
  std::string_view rest = url.substr(scheme.size());
  RedisSettings settings;
  if (scheme == kTls) settings.tls.emplace();
  if (!take_user(rest, scheme == kUnix, settings))
    return wrong(
        "has a user part that is not user:password (write '%' as %25 and a ':' of the user as %3A there, or "
        "use the keys username and password, which allow any character)");
  return scheme == kUnix ? parse_unix(rest, settings) : parse_tcp(rest, settings);
}

}  // namespace weir::redis
