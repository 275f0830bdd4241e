// Fuzzes the conditions of rules and routes with any request. If a condition holds, weir must not return a
// reason why it fails. If the head alone decides a condition, no body may change the result. A parameter that
// occurs twice with different values must have no value.
#include "fuzz/input.hpp"
#include "policy/identity/consistent_value.hpp"

#include "weir/http/head_parser.hpp"
#include "weir/http/target.hpp"
#include "weir/policy/match.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::fuzz {
namespace {

using policy::Match;
using policy::PathMatch;
using policy::TextMatch;

policy::NamedText named(const char* name, const char* pattern) {
  return {name, pattern == nullptr ? TextMatch::present() : TextMatch::parse(pattern).value()};
}

const std::vector<Match>& matches() {
  static const auto kMatches = [] {
    std::vector<Match> made(7);
    made[0].path = PathMatch::parse("/api/*").value();
    made[1].path = PathMatch::parse("~^/[a-c]+$").value();
    made[2].methods = {"GET", "POST"};
    made[3].headers = {named("X-A", "b"), named("X-B", nullptr)};
    made[4].query = {named("a", "~^b"), named("c", nullptr)};
    made[5].body_words = {"word"};
    made[5].max_body = 100;
    made[6].hosts = {policy::HostMatch::parse("example.com").value(),
                     policy::HostMatch::parse("*.example.org").value()};
    auto negated = made[4];
    negated.path = made[0].path;
    made[3].negated = std::make_shared<const Match>(negated);
    return made;
  }();
  return kMatches;
}

void check_matches(policy::Request request) {
  for (const auto& match : matches()) {
    request.body = {};
    const auto known = match.known(request);
    request.body = {policy::RequestBody::State::Whole, "a Word"};
    const bool holds = match.holds(request);
    require(match.why_not(request).empty() == holds,
            "there is a reason where it does not hold, and only there");
    require(known != Match::Known::Yes || holds, "what the head admits holds");
    require(known != Match::Known::No || !holds, "what the head rules out does not hold");
    (void)match.ambiguity(request);
  }
}

// Returns a copy of the head whose query has one more parameter at the end.
http::RequestHead with_parameter(const http::RequestHead& head, std::string& query,
                                 std::string_view parameter) {
  query = std::string(head.query) + (head.query.empty() ? "" : "&") + std::string(parameter);
  auto more = head;
  more.query = query;
  return more;
}

void check_said(const http::RequestHead& head) {
  std::string query;
  const auto once = policy::value_in_query(head, "new\x01name");
  require(once && once->empty(), "what is not said is empty");
  const auto first = with_parameter(head, query, "new%01name=v%31");
  const auto said = policy::value_in_query(first, "new\x01name");
  require(!said || *said == "v1", "what is said is decoded");
  std::string longer;
  const auto alike = with_parameter(first, longer, "new%01name=%761");
  require(policy::value_in_query(alike, "new\x01name") == said, "what is said twice alike is one value");
  std::string longest;
  const auto differing = with_parameter(first, longest, "new%01name=v2");
  require(!policy::value_in_query(differing, "new\x01name"), "what is said twice differently is no value");
  std::string decoded;
  (void)policy::value_in_cookies(head, "a", decoded);
  (void)policy::value_in_header(head, "X-A");
}

void run(std::string_view input) {
  const std::string text(input);
  const auto size = http::find_head_end(text);
  if (size == 0) return;
  http::RequestHead head;
  if (http::parse_request_head(std::string_view(text).substr(0, size), head)) return;
  policy::Request request{
      .head = &head, .path = head.path, .host = head.authority, .route = {}, .client = {}};
  check_matches(request);
  if (head.query.find("%01") == std::string_view::npos) check_said(head);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
