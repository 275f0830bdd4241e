// Fuzzes normal forms of paths:
// - The normal form of a normal form must be the same path.
// - A path that is percent-encoded in another way must have the same normal form.
// - If weir finds no ambiguity, servers that remove dot segments first must read the same path.
#include "fuzz/input.hpp"

#include "weir/http/path_interpretations.hpp"
#include "weir/http/percent.hpp"
#include "weir/http/target.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fuzz {
namespace {

std::string normal(std::string_view raw) {
  std::string scratch;
  return std::string(http::normalise_path(raw, scratch));
}

std::string without_last_slash(std::string path) {
  if (path.ends_with('/')) path.pop_back();
  return path;
}

// Removes dot segments according to RFC 3986 §5.2.4: ".." also removes an empty segment, and "..;x" is no dot
// segment. Then removes parameters (";x") and merges slashes. REQUIRES: `path` is a result of
// path_spelling().
std::string dots_first(std::string_view path) {
  std::vector<std::string_view> stack;
  while (!path.empty()) {
    path.remove_prefix(1);
    const auto segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    if (segment == ".") continue;
    if (segment != "..")
      stack.push_back(segment);
    else if (!stack.empty())
      stack.pop_back();
  }
  std::string out;
  for (const auto segment : stack) {
    const auto name = segment.substr(0, segment.find(';'));
    if (!name.empty()) out.append("/").append(name);
  }
  return out;
}

// Returns the path with each encoded slash decoded, as some servers do before they remove dot segments.
std::string slashes_decoded(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const bool slash = http::encoded_octet(path) == '/';
    out.push_back(slash ? '/' : path.front());
    path.remove_prefix(slash ? 3 : 1);
  }
  return out;
}

// Checks that `reading`, the path that a server reads in `raw`, is either the normal form of `raw` or one of
// the other interpretations that weir finds.
void require_reading(std::string_view raw, const std::string& reading) {
  const auto way = normal(raw);
  http::PathInterpretations interpretations;
  if (reading == way) return;
  require(http::find_path_interpretations(raw, way, interpretations), "another reading is noticed");
  const auto& others = interpretations.others;
  require(interpretations.too_many || std::find(others.begin(), others.end(), reading) != others.end(),
          "what a server reads is among the readings");
}

void check(std::string_view raw, const std::string& way, const std::string& respelt) {
  require(normal(way) == way, "the normal form is its own");
  require(http::path_spelling(way) == way, "and in the one spelling");
  require(normal(respelt) == way, "no spelling changes it");
  require((way + "/").find("/./") == std::string::npos && (way + "/").find("/../") == std::string::npos,
          "there is no dot segment in it");
  require(way.starts_with('/') && way.find("//") == std::string::npos, "no segment is empty");
  require(std::all_of(way.begin(), way.end(), [](char c) { return c > 0x20 && c < 0x7f; }),
          "it is printable");
  if (http::path_fault(raw) == nullptr) {
    require_reading(raw, normal(slashes_decoded(raw)));
    require_reading(raw, normal(slashes_decoded(way)));
  }
  const bool doubted = http::path_warning(raw) != nullptr;
  require(doubted == (http::path_warning(respelt) != nullptr) || raw.find('\\') != std::string_view::npos ||
              raw.find('\0') != std::string_view::npos,
          "a doubt is one however it is spelt");
  if (doubted) return;
  require(without_last_slash(way) == dots_first(http::path_spelling(raw)), "servers agree");
  require(normal(slashes_decoded(raw)) == normal(slashes_decoded(way)), "a slash that is encoded is seen");
}

// Returns the path with each byte, except slashes, either encoded or not, as `in` chooses.
std::string another_spelling(std::string_view raw, Input& in) {
  constexpr char kDigits[] = "0123456789ABCDEF0123456789abcdef";
  std::string out = "/";
  for (raw.remove_prefix(1); !raw.empty();) {
    const auto encoded = http::encoded_octet(raw);
    const char octet = encoded ? *encoded : raw.front();
    const bool slash = !encoded && octet == '/';
    raw.remove_prefix(encoded ? 3 : 1);
    const auto choice = in.byte();
    const auto value = static_cast<unsigned char>(octet);
    const bool needed = octet == '%' || octet == '#' || octet == '\0' || octet == '/' || octet == '\\';
    if (slash || (!needed && choice % 2 == 0))
      out.push_back(octet);
    else
      out.append({'%', kDigits[(value >> 4) + (choice & 16)], kDigits[(value & 15) + (choice & 16)]});
  }
  return out;
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  fuzz::Input in(bytes, size);
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const std::string raw = "/" + std::string(text.substr(0, text.find('#')));
  fuzz::check(raw, fuzz::normal(raw), fuzz::another_spelling(raw, in));
  return 0;
}
