// Conditions on a request: every one that is given must hold. Used by rules, overrides and routes alike.
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/head.hpp"
#include "weir/http/path_readings.hpp"
#include "weir/policy/body.hpp"
#include "weir/policy/hours.hpp"
#include "weir/policy/identity.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// What rules may ask about one request. Views; they live as long as the head's buffer.
struct Request {
  const http::RequestHead* head = nullptr;
  std::string_view path;  // http::normalise_path
  const http::PathReadings* readings =
      nullptr;                  // other paths that a server may read; null: none that matters
  std::string_view host;        // http::normalise_host
  std::string_view route;       // name of the matched route; empty while routes are being matched
  std::string_view upstream{};  // name of the one it leads to; empty where weir answers itself
  ClientIdentity client;
  base::TimePoint now{};       // when it came
  double load = 1;             // of the system then, 0 idle to 1 full; elastic limits look at it
  RequestBody body{};          // as much of it as rules asked for (policy/inspection.hpp)
  bool routes_differ = false;  // other readings of the path lead elsewhere, and the route does not pass them
};

// A test of one text: exact, or "~regex" (RE2, searches), or present at all.
class TextMatch {
 public:
  // "text" exact, "~regex". An error names what is wrong with the expression.
  [[nodiscard]] static base::Result<TextMatch> parse(std::string_view pattern);
  [[nodiscard]] static TextMatch present();
  [[nodiscard]] bool holds(std::string_view text) const;
  // Whether it holds of every text that the other one holds of. False where expressions would have to be
  // compared: of two of them only that they are the same is seen.
  [[nodiscard]] bool covers(const TextMatch& other) const;
  [[nodiscard]] std::string describe() const;

 private:
  struct Regex;
  std::string exact_;
  std::shared_ptr<const Regex>
      regex_;  // shared: a Match is copied freely and a compiled expression never changes
  bool any_ = false;
};

// "/login" exact; "/api/*" what lies below /api/ ("/api/" itself included); "/api*" what begins so; "*" and
// "/*" everything, `OPTIONS *` too; "~regex". Octets may be spelt in any way, "/caf%c3%a9" or "/café", but in
// an expression, which sees the normal form of paths. An error also where the pattern could never match that
// form.
class PathMatch {
 public:
  [[nodiscard]] static base::Result<PathMatch> parse(std::string_view pattern);
  [[nodiscard]] bool holds(std::string_view path) const;
  // As TextMatch::covers().
  [[nodiscard]] bool covers(const PathMatch& other) const;
  // Whether it holds of every path that begins with '/'; an expression counts as one that does not.
  [[nodiscard]] bool holds_of_all() const noexcept { return prefix_ && text_.size() <= 1; }
  [[nodiscard]] std::string describe() const;

 private:
  std::string text_;
  bool prefix_ = false;
  std::optional<TextMatch> regex_;
};

struct NamedText {
  std::string name;
  TextMatch text;
};

// What a request says in several ways that differ, where a rule asks for it: which of them the upstream
// believes is not known.
struct Ambiguity {
  const char* place;      // "header", "query parameter", "cookie", "path"
  std::string_view name;  // a view of the rule's; empty for a path
};

struct Match {
  std::optional<PathMatch> path;
  std::vector<std::string> methods;  // any of; compared with case (RFC 9110 §9.1)
  std::optional<std::string> host;   // lower case
  // All of; each holds if any line of the field, or any parameter of the name, does. Names and values of the
  // query are compared after percent-decoding, with '+' for a blank or for itself.
  std::vector<NamedText> headers;        // names without case
  std::vector<NamedText> query;          // names with case
  std::vector<std::string> tiers;        // any of
  std::vector<base::Cidr> ip;            // any of
  std::vector<std::string> countries;    // any of: "CH"
  std::optional<Hours> hours;            // by Request::now
  std::vector<std::string> body_words;   // `body_contains`: any of, each as body_word() makes it
  std::shared_ptr<const Match> negated;  // `not`: the whole of it must not hold
  // Bytes of a body that are read for the words, here and in what is negated; 0: there are none.
  std::uint64_t max_body = 0;

  // The first condition that does not hold, in this order.
  enum class Unmet : std::uint8_t {
    Nothing,  // all of them hold
    Method,
    Host,
    Tier,
    Country,
    Path,
    Ip,
    Hours,
    Header,
    Query,
    Body,
    Excluded,  // what is negated holds
  };
  // REQUIRES the whole body where the words ask for it, as do the next two.
  [[nodiscard]] Unmet unmet(const Request& request) const;
  [[nodiscard]] bool holds(const Request& request) const { return unmet(request) == Unmet::Nothing; }
  // The same in words: "path /login does not match /api/*"; empty where it holds. Values that the request
  // says in headers and its query are not repeated.
  [[nodiscard]] std::string why_not(const Request& request) const;

  // What the head alone says of it.
  enum class Known : std::uint8_t {
    No,    // it does not hold
    Yes,   // it holds
    Open,  // the body decides
  };
  [[nodiscard]] Known known(const Request& request) const;
  // The first condition on the path, a header or the query that holds of one of its readings or values and
  // not of another, where all else that the head says holds. Such a request is to be refused: under `not`, in
  // an override or where the upstream goes by the other value either reading is a way round.
  [[nodiscard]] std::optional<Ambiguity> ambiguity(const Request& request) const {
    if (is_path_ambiguous(request)) return Ambiguity{.place = "path", .name = {}};
    return ambiguity_in_values(request);
  }
  // Whether the conditions hold of one reading of the path and not of another. Of readings that few servers
  // have (PathReadings::equal is false) only those count of which they hold where they do not of the normal
  // form: such a request would get round the conditions.
  [[nodiscard]] bool is_path_ambiguous(const Request& request) const {
    return request.readings != nullptr && divides_readings(request);
  }
  // "path /api/*, methods GET POST"; "everything" when empty.
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] bool goes_by_path() const noexcept;
  [[nodiscard]] bool divides_readings(const Request& request) const;
  // Returns true if no condition on the path tells these two paths apart.
  [[nodiscard]] bool treats_alike(std::string_view one, std::string_view other) const;
  // That of a header or the query. Most have neither condition.
  [[nodiscard]] std::optional<Ambiguity> ambiguity_in_values(const Request& request) const {
    if (headers.empty() && query.empty() && !negated) return std::nullopt;
    return ambiguity_by_name(request);
  }
  [[nodiscard]] std::optional<Ambiguity> ambiguity_by_name(const Request& request) const;
  [[nodiscard]] Unmet unmet_by_client(const Request& request) const;
  [[nodiscard]] Unmet unmet_by_head(const Request& request) const;
  // The first of `headers`, or of `query`, that holds of no value; null: none.
  [[nodiscard]] const NamedText* unmet_header(const Request& request) const;
  [[nodiscard]] const NamedText* unmet_parameter(const Request& request) const;
};

}  // namespace weir::policy
