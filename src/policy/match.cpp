#include "weir/policy/match.hpp"

#include "policy/pieces.hpp"
#include "policy/said.hpp"

#include "weir/http/target.hpp"

#include <algorithm>

#include <re2/re2.h>

namespace weir::policy {

// Octets, not UTF-8: a client must not get round a '.' with an octet that is no character.
struct TextMatch::Regex {
  explicit Regex(std::string_view pattern)
      : expression(re2::StringPiece(pattern.data(), pattern.size()), options()) {}

  static RE2::Options options() {
    RE2::Options o;
    o.set_encoding(RE2::Options::EncodingLatin1);
    o.set_log_errors(false);
    return o;
  }

  RE2 expression;
};

base::Result<TextMatch> TextMatch::parse(std::string_view pattern) {
  TextMatch match;
  match.exact_ = pattern;
  if (!pattern.starts_with('~')) return match;
  auto regex = std::make_shared<const Regex>(pattern.substr(1));
  if (!regex->expression.ok())
    return base::Error{"\"" + match.exact_ + "\" is not a regular expression: " + regex->expression.error()};
  match.regex_ = std::move(regex);
  return match;
}

TextMatch TextMatch::present() {
  TextMatch match;
  match.any_ = true;
  return match;
}

bool TextMatch::holds(std::string_view text) const {
  if (any_) return true;
  if (!regex_) return text == exact_;
  return RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), regex_->expression);
}

bool TextMatch::covers(const TextMatch& other) const {
  if (any_ || other.any_) return any_;
  return exact_ == other.exact_ || (!other.regex_ && holds(other.exact_));
}

std::string TextMatch::describe() const {
  return any_ ? "present" : exact_;
}

base::Result<PathMatch> PathMatch::parse(std::string_view pattern) {
  const auto wrong = [&](const std::string& why) {
    return base::Error{"\"" + std::string(pattern) + "\" " + why};
  };
  PathMatch match;
  if (pattern.starts_with('~')) {
    if (std::any_of(pattern.begin(), pattern.end(), [](unsigned char c) { return c >= 0x80; }))
      return wrong("can never match, paths are compared in ASCII: write such characters as %XX, in UTF-8");
    auto regex = TextMatch::parse(pattern);
    if (!regex) return regex.error();
    match.regex_ = std::move(*regex);
    return match;
  }
  match.prefix_ = pattern.ends_with('*');
  match.text_ = pattern.substr(0, pattern.size() - (match.prefix_ ? 1 : 0));
  if (match.text_.empty() && match.prefix_) return match;
  if (!match.text_.starts_with('/'))
    return wrong("is not a path: write \"/exact\", \"/below/*\" or \"~regex\"");
  if (match.text_.find('*') != std::string::npos)
    return wrong("has a '*' before its end: only the last character may be one; \"~regex\" can say more");
  if (match.text_.find_first_of("?#") != std::string::npos)
    return wrong("is more than a path: a query is matched by `query`");
  // A prefix may end inside a segment, which some letter is going to complete: one that is no digit of %XX.
  const std::string spelt = http::path_spelling(match.text_ + (match.prefix_ ? "x" : ""));
  std::string scratch;
  const auto normal = http::normalise_path(spelt, scratch);
  if (normal != spelt || http::path_doubt(match.text_) != nullptr)
    return wrong("can never match, paths are compared in normal form: " + std::string(normal));
  match.text_ = spelt.substr(0, spelt.size() - (match.prefix_ ? 1 : 0));
  return match;
}

bool PathMatch::holds(std::string_view path) const {
  if (regex_) return regex_->holds(path);
  if (path == "*") return prefix_ && (text_.empty() || text_ == "/");
  return prefix_ ? path.starts_with(text_) : path == text_;
}

bool PathMatch::covers(const PathMatch& other) const {
  if (other.regex_) return regex_ ? regex_->covers(*other.regex_) : prefix_ && text_.empty();
  if (!other.prefix_) return holds(other.text_);
  return prefix_ && other.text_.starts_with(text_);
}

std::string PathMatch::describe() const {
  return regex_ ? regex_->describe() : text_ + (prefix_ ? "*" : "");
}

namespace {

// Of how many values a condition holds.
struct Tally {
  std::size_t all = 0;
  std::size_t held = 0;

  void add(bool holds) noexcept {
    ++all;
    held += holds ? 1 : 0;
  }
};

Tally tally(const http::Fields& fields, const NamedText& wanted) {
  Tally tally;
  for (const auto& field : fields)
    if (field.name.size() == wanted.name.size() && http::equal_ignoring_case(field.name, wanted.name))
      tally.add(wanted.text.holds(field.value));
  return tally;
}

bool value_holds(const TextMatch& text, std::string_view raw, std::string& scratch) {
  return text.holds(http::percent_decoded(raw, scratch)) ||
         (raw.find('+') != std::string_view::npos &&
          text.holds(http::percent_decoded(raw, scratch, http::Plus::Blank)));
}

Tally tally(std::string_view query, const NamedText& wanted) {
  Tally tally;
  std::string scratch;
  while (!query.empty()) {
    const auto parameter = name_value(take_piece(query, '&'));
    if (is_parameter(parameter.name, wanted.name))
      tally.add(value_holds(wanted.text, parameter.value, scratch));
  }
  return tally;
}

// The name of the first condition that holds of some of its values alone.
template <class From>
const NamedText* divided(const From& from, const std::vector<NamedText>& conditions) {
  const auto found = std::find_if(conditions.begin(), conditions.end(), [&](const NamedText& wanted) {
    const auto count = tally(from, wanted);
    return count.held != 0 && count.held != count.all;
  });
  return found == conditions.end() ? nullptr : &*found;
}

// The first condition that holds of no value.
template <class From>
const NamedText* unmet_name(const From& from, const std::vector<NamedText>& conditions) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const NamedText& wanted) { return tally(from, wanted).held == 0; });
  return found == conditions.end() ? nullptr : &*found;
}

// Inline up to the look at an empty list, which is what most are.
bool found_in(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}
inline bool any_of(const std::vector<std::string>& texts, std::string_view text) {
  return texts.empty() || found_in(texts, text);
}

void add(std::string& line, std::string_view words) {
  if (!line.empty()) line += ", ";
  line += words;
}

void add_texts(std::string& line, const char* what, const std::vector<NamedText>& texts) {
  for (const auto& [name, text] : texts) {
    const auto described = text.describe();
    add(line, std::string(what) + " " + name + (described == "present" ? " " : " = ") + described);
  }
}

void add_words(std::string& line, const char* what, const std::vector<std::string>& words) {
  if (words.empty()) return;
  add(line, what);
  for (const auto& word : words) line += " " + word;
}

}  // namespace

// All but headers, the query, the words and what is negated.
inline Match::Unmet Match::unmet_by_client(const Request& request) const {
  const auto block = [&](const base::Cidr& b) { return b.contains(request.client.address); };
  if (!any_of(methods, request.head->method)) return Unmet::Method;
  if (host && request.host != *host) return Unmet::Host;
  if (!any_of(tiers, request.client.tier)) return Unmet::Tier;
  if (!any_of(countries, request.client.country)) return Unmet::Country;
  if (path && !path->holds(request.path)) return Unmet::Path;
  if (!ip.empty() && std::none_of(ip.begin(), ip.end(), block)) return Unmet::Ip;
  return hours && !hours->hold(request.now) ? Unmet::Hours : Unmet::Nothing;
}

const NamedText* Match::unmet_header(const Request& request) const {
  return unmet_name(request.head->fields, headers);
}

const NamedText* Match::unmet_parameter(const Request& request) const {
  return unmet_name(request.head->query, query);
}

// All but the words and what is negated.
inline Match::Unmet Match::unmet_by_head(const Request& request) const {
  if (const auto unmet = unmet_by_client(request); unmet != Unmet::Nothing) return unmet;
  if (!headers.empty() && unmet_header(request) != nullptr) return Unmet::Header;
  return !query.empty() && unmet_parameter(request) != nullptr ? Unmet::Query : Unmet::Nothing;
}

Match::Unmet Match::unmet(const Request& request) const {
  if (const auto unmet = unmet_by_head(request); unmet != Unmet::Nothing) return unmet;
  if (!body_words.empty() && !body_contains(request.body.text, body_words)) return Unmet::Body;
  return negated && negated->holds(request) ? Unmet::Excluded : Unmet::Nothing;
}

Match::Known Match::known(const Request& request) const {
  if (unmet_by_head(request) != Unmet::Nothing) return Known::No;
  const auto rest = negated ? negated->known(request) : Known::No;
  if (rest == Known::Yes) return Known::No;
  return body_words.empty() && rest == Known::No ? Known::Yes : Known::Open;
}

std::optional<Ambiguity> Match::ambiguity_by_name(const Request& request) const {
  if (unmet_by_client(request) != Unmet::Nothing) return std::nullopt;
  if (const auto* found = divided(request.head->fields, headers)) return Ambiguity{"header", found->name};
  if (const auto* found = divided(request.head->query, query))
    return Ambiguity{"query parameter", found->name};
  return negated ? negated->ambiguity(request) : std::nullopt;
}

std::string Match::describe() const {
  std::string line;
  if (path) add(line, "path " + path->describe());
  add_words(line, "methods", methods);
  if (host) add(line, "host " + *host);
  add_texts(line, "header", headers);
  add_texts(line, "query", query);
  add_words(line, "tier", tiers);
  std::vector<std::string> blocks;
  for (const auto& block : ip) blocks.push_back(block.to_string());
  add_words(line, "ip", blocks);
  add_words(line, "country", countries);
  if (hours) add(line, hours->describe());
  if (!body_words.empty()) add(line, "body with");
  for (const auto& word : body_words) line += " \"" + word + "\"";
  if (negated) add(line, "not (" + negated->describe() + ")");
  return line.empty() ? "everything" : line;
}

}  // namespace weir::policy
