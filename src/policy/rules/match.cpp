#include "weir/policy/match.hpp"

#include "weir/policy/body_values.hpp"

#include <algorithm>
#include <utility>

namespace weir::policy {

namespace {

// The number of values that a header or parameter has, and the number of values for which a condition holds.
struct Tally {
  std::size_t all = 0;
  std::size_t held = 0;
  bool complete = true;  // false: the request exceeds a bound, so only its first values were counted

  void add(bool holds) noexcept {
    ++all;
    held += holds ? 1 : 0;
  }
  [[nodiscard]] bool divided() const noexcept { return !complete || (held != 0 && held != all); }
};

bool has_name(const http::Field& field, std::string_view name) noexcept {
  return field.name.size() == name.size() && http::equal_ignoring_case(field.name, name);
}

Tally tally_header(const http::RequestHead& head, const NamedText& wanted) {
  Tally tally;
  for (const auto& field : head.fields) {
    if (!has_name(field, wanted.name)) continue;
    tally.complete = tally.all < head.bounds.repeats;
    if (!tally.complete) break;
    tally.add(wanted.text.holds(field.value));
  }
  if (!tally.complete)
    head.note_excess({.kind = http::Excess::Kind::Repeats, .place = "header", .name = wanted.name});
  return tally;
}

bool value_holds(const TextMatch& text, const http::Parameter& parameter) {
  return text.holds(parameter.decoded) ||
         (parameter.spaced.data() != parameter.decoded.data() && text.holds(parameter.spaced));
}

Tally tally_query(const http::RequestHead& head, const NamedText& wanted) {
  const auto found = head.query_values(wanted.name);
  Tally tally;
  tally.complete = found.complete;
  for (const auto& parameter : found.values) tally.add(value_holds(wanted.text, parameter));
  return tally;
}

// Returns true if the header occurs more than once. Only then can a condition hold for some values and not
// for others.
bool is_repeated_header(const http::RequestHead& head, const NamedText& wanted) {
  const auto same = [&](const http::Field& field) { return has_name(field, wanted.name); };
  const auto first = std::find_if(head.fields.begin(), head.fields.end(), same);
  return first != head.fields.end() && std::any_of(first + 1, head.fields.end(), same);
}

bool is_repeated_parameter(const http::RequestHead& head, const NamedText& wanted) {
  const auto found = head.query_values(wanted.name);
  return found.values.size() > 1 || !found.complete;
}

// Returns the first condition that holds for some values of its header but not for all.
const NamedText* divided_header(const http::RequestHead& head, const std::vector<NamedText>& conditions) {
  const auto found = std::find_if(conditions.begin(), conditions.end(), [&](const NamedText& wanted) {
    return is_repeated_header(head, wanted) && tally_header(head, wanted).divided();
  });
  return found == conditions.end() ? nullptr : &*found;
}

const NamedText* divided_parameter(const http::RequestHead& head, const std::vector<NamedText>& conditions) {
  const auto found = std::find_if(conditions.begin(), conditions.end(), [&](const NamedText& wanted) {
    return is_repeated_parameter(head, wanted) && tally_query(head, wanted).divided();
  });
  return found == conditions.end() ? nullptr : &*found;
}

// Returns true if the list contains the text. Most lists are empty, so only the test for an empty list is
// inline.
bool found_in(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}
inline bool any_of(const std::vector<std::string>& texts, std::string_view text) {
  return texts.empty() || found_in(texts, text);
}

bool matches_host(const std::vector<HostMatch>& patterns, std::string_view host) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const HostMatch& pattern) { return pattern.holds(host); });
}

// Returns true if the text, or one of the words in it, meets the condition.
bool a_word_holds(const TextMatch& wanted, std::string_view text) {
  if (wanted.holds(text)) return true;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    if (end > at && wanted.holds(text.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

bool claim_holds(const Claims& claims, const NamedText& wanted) {
  const bool words = wanted.name == "scope";
  return claims.any(wanted.name, [&](std::string_view value) {
    return words ? a_word_holds(wanted.text, value) : wanted.text.holds(value);
  });
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

bool is_https(const Request& request) noexcept {
  const auto* const told = request.client.peer_trusted
                               ? http::find_field(request.head->fields, http::FieldId::XForwardedProto)
                               : nullptr;
  if (told == nullptr || told->hop_by_hop) return request.secure;
  if (http::equal_ignoring_case(told->value, "https")) return true;
  return !http::equal_ignoring_case(told->value, "http") && request.secure;
}

void Match::set_routes(std::vector<std::string> names, const std::vector<std::string>& all) {
  routes = std::move(names);
  if (routes.empty()) return;
  auto sorted = routes;
  std::sort(sorted.begin(), sorted.end());
  for (const auto& name : all) has_route.push_back(std::binary_search(sorted.begin(), sorted.end(), name));
}

// Returns the first unmet condition. Ignores `negated` and the conditions on headers, the query and the body.
inline Match::Unmet Match::unmet_by_client(const Request& request, OfToken of_token) const {
  const auto block = [&](const base::Cidr& b) { return b.contains(request.client.address); };
  if (!any_of(methods, request.head->method)) return Unmet::Method;
  if (!hosts.empty() && !matches_host(hosts, request.host)) return Unmet::Host;
  if (https && *https != is_https(request)) return Unmet::Scheme;
  if (!any_of(listeners, request.listener)) return Unmet::Listener;
  if (!any_of(domains, request.domain)) return Unmet::Domain;
  if (!descriptor.empty() && unmet_value(request) != nullptr) return Unmet::Descriptor;
  if (!routes.empty() && !is_route_listed(request.route_index)) return Unmet::Route;
  if (!any_of(tiers, request.client.tier) && (of_token == OfToken::Unmet || !awaits_tier(request.client)))
    return Unmet::Tier;
  if (!claims.empty() && unmet_claim(request.client) != nullptr &&
      (of_token == OfToken::Unmet || request.client.token.empty()))
    return Unmet::Claim;
  if (!any_of(countries, request.client.country)) return Unmet::Country;
  if (!any_of(cities, request.client.city)) return Unmet::City;
  if (!any_of(regions, request.client.region)) return Unmet::Region;
  if (!any_of(asns, request.client.asn)) return Unmet::Asn;
  if (path && !path->holds(request.path)) return Unmet::Path;
  if (!ip.empty() && std::none_of(ip.begin(), ip.end(), block)) return Unmet::Ip;
  return hours && !hours->hold(request.now) ? Unmet::Hours : Unmet::Nothing;
}

const NamedText* Match::unmet_header(const Request& request) const {
  const auto unmet = [&](const NamedText& wanted) { return tally_header(*request.head, wanted).held == 0; };
  const auto found = std::find_if(headers.begin(), headers.end(), unmet);
  return found == headers.end() ? nullptr : &*found;
}

const NamedText* Match::unmet_parameter(const Request& request) const {
  const auto unmet = [&](const NamedText& wanted) { return tally_query(*request.head, wanted).held == 0; };
  const auto found = std::find_if(query.begin(), query.end(), unmet);
  return found == query.end() ? nullptr : &*found;
}

const NamedText* Match::unmet_claim(const ClientIdentity& client) const {
  const auto unmet = [&](const NamedText& wanted) {
    return client.claims == nullptr || !claim_holds(*client.claims, wanted);
  };
  const auto found = std::find_if(claims.begin(), claims.end(), unmet);
  return found == claims.end() ? nullptr : &*found;
}

bool Match::awaits_token(const Request& request) const noexcept {
  if (request.client.token.empty()) return false;
  return !claims.empty() || (!tiers.empty() && awaits_tier(request.client)) ||
         (negated && negated->awaits_token(request));
}

const NamedText* Match::unmet_json(const Request& request) const {
  const auto unmet = [&](const NamedText& wanted) {
    const auto value =
        request.body.values != nullptr ? request.body.values->json(wanted.name) : std::string_view{};
    return value.empty() || !wanted.text.holds(value);
  };
  const auto found = std::find_if(json.begin(), json.end(), unmet);
  return found == json.end() ? nullptr : &*found;
}

const NamedText* Match::unmet_value(const Request& request) const {
  const auto unmet_in = [&](const Descriptor* given) -> const NamedText* {
    const auto unmet = [&](const NamedText& wanted) {
      const auto value = given != nullptr ? given->value_of(wanted.name) : std::string_view{};
      return value.empty() || !wanted.text.holds(value);
    };
    const auto found = std::find_if(descriptor.begin(), descriptor.end(), unmet);
    return found == descriptor.end() ? nullptr : &*found;
  };
  if (request.descriptor != nullptr || request.descriptors.empty()) return unmet_in(request.descriptor);
  const NamedText* first = nullptr;
  for (const auto& given : request.descriptors) {
    const auto* unmet = unmet_in(&given);
    if (unmet == nullptr) return nullptr;
    if (first == nullptr) first = unmet;
  }
  return first;
}

// Returns the first unmet condition. Ignores conditions on the body, and `negated`.
inline Match::Unmet Match::unmet_by_head(const Request& request, OfToken of_token) const {
  if (const auto unmet = unmet_by_client(request, of_token); unmet != Unmet::Nothing) return unmet;
  if (!headers.empty() && unmet_header(request) != nullptr) return Unmet::Header;
  return !query.empty() && unmet_parameter(request) != nullptr ? Unmet::Query : Unmet::Nothing;
}

Match::Unmet Match::unmet(const Request& request) const {
  if (const auto unmet = unmet_by_head(request); unmet != Unmet::Nothing) return unmet;
  if (!body_words.empty() && !body_contains(request.body.text, body_words)) return Unmet::Body;
  if (!json.empty() && unmet_json(request) != nullptr) return Unmet::Json;
  return negated && negated->holds(request) ? Unmet::Excluded : Unmet::Nothing;
}

bool Match::is_about_clients() const noexcept {
  return !path && methods.empty() && hosts.empty() && !https && listeners.empty() && domains.empty() &&
         descriptor.empty() && routes.empty() && headers.empty() && query.empty() && body_words.empty() &&
         json.empty() && (!negated || negated->is_about_clients());
}

bool Match::holds_for_client(const Request& request) const {
  const auto block = [&](const base::Cidr& b) { return b.contains(request.client.address); };
  if (!any_of(tiers, request.client.tier) || !any_of(countries, request.client.country)) return false;
  if (!claims.empty() && unmet_claim(request.client) != nullptr) return false;
  if (!any_of(cities, request.client.city) || !any_of(regions, request.client.region)) return false;
  if (!any_of(asns, request.client.asn)) return false;
  if (!ip.empty() && std::none_of(ip.begin(), ip.end(), block)) return false;
  if (hours && !hours->hold(request.now)) return false;
  return !negated || !negated->is_about_clients() || !negated->holds_for_client(request);
}

Match::Known Match::known(const Request& request) const {
  if (unmet_by_head(request, OfToken::Ignored) != Unmet::Nothing) return Known::No;
  const auto rest = negated ? negated->known(request) : Known::No;
  if (rest == Known::Yes) return Known::No;
  const bool decided = body_words.empty() && json.empty() && !awaits_token(request);
  return decided && rest == Known::No ? Known::Yes : Known::Open;
}

bool Match::goes_by_path() const noexcept {
  return (path && !path->holds_of_all()) || (negated && negated->goes_by_path());
}

// Decides is_path_ambiguous(). REQUIRES: request.interpretations is set.
bool Match::divides_interpretations(const Request& request) const {
  const auto& interpretations = *request.interpretations;
  if (!goes_by_path()) return false;
  if (interpretations.too_many) return true;
  const auto usual = known(request);
  // Whether the conditions hold for the path's normal form. Computed at most once, because the conditions may
  // search the body.
  std::optional<bool> usual_holds;
  auto other = request;
  return std::any_of(interpretations.others.begin(), interpretations.others.end(),
                     [&](const std::string& reading) {
                       if (treats_alike(request.path, reading)) return false;
                       other.path = reading;
                       const auto found = known(other);
                       if (!interpretations.equal) return usual == Known::No && found != Known::No;
                       if (found != usual || usual != Known::Open) return found != usual;
                       if (!usual_holds) usual_holds = holds(request);
                       return holds(other) != *usual_holds;
                     });
}

bool Match::treats_alike(std::string_view one, std::string_view other) const {
  if (path && path->holds(one) != path->holds(other)) return false;
  return !negated || negated->treats_alike(one, other);
}

std::optional<Ambiguity> Match::ambiguity_by_name(const Request& request) const {
  if (unmet_by_client(request) != Unmet::Nothing) return std::nullopt;
  if (const auto* found = divided_header(*request.head, headers)) return Ambiguity{"header", found->name};
  if (const auto* found = divided_parameter(*request.head, query))
    return Ambiguity{"query parameter", found->name};
  if (const auto found = fault_in_json(request)) return found;
  return negated ? negated->ambiguity_in_values(request) : std::nullopt;
}

std::optional<Ambiguity> Match::fault_in_json(const Request& request) const {
  if (request.body.values == nullptr || unmet_by_head(request) != Unmet::Nothing) return std::nullopt;
  for (const auto& [pointer, text] : json)
    if (const auto fault = request.body.values->fault_of_json(pointer);
        fault != BodyFault::None && fault != BodyFault::Structured)
      return Ambiguity{"JSON member", pointer, fault, request.body.values->json_fault()};
  return std::nullopt;
}

bool hosts_cover(const Match& wide, const Match& narrow) {
  const auto is_covered = [&](const HostMatch& one) {
    return std::any_of(wide.hosts.begin(), wide.hosts.end(),
                       [&](const HostMatch& pattern) { return pattern.covers(one); });
  };
  return wide.hosts.empty() ||
         (!narrow.hosts.empty() && std::all_of(narrow.hosts.begin(), narrow.hosts.end(), is_covered));
}

std::string Match::describe() const {
  std::string line;
  if (path) add(line, "path " + path->describe());
  add_words(line, "methods", methods);
  if (!hosts.empty()) add(line, "host");
  for (const auto& pattern : hosts) line += " " + pattern.describe();
  if (https) add(line, *https ? "scheme https" : "scheme http");
  add_words(line, "listener", listeners);
  add_words(line, "domain", domains);
  add_texts(line, "descriptor", descriptor);
  add_words(line, "route", routes);
  add_texts(line, "header", headers);
  add_texts(line, "query", query);
  add_words(line, "tier", tiers);
  add_texts(line, "claim", claims);
  std::vector<std::string> blocks;
  for (const auto& block : ip) blocks.push_back(block.to_string());
  add_words(line, "ip", blocks);
  add_words(line, "country", countries);
  add_words(line, "city", cities);
  add_words(line, "region", regions);
  add_words(line, "asn", asns);
  if (hours) add(line, hours->describe());
  if (!body_words.empty()) add(line, "body with");
  for (const auto& word : body_words) line += " \"" + word + "\"";
  add_texts(line, "json", json);
  if (negated) add(line, "not (" + negated->describe() + ")");
  return line.empty() ? "everything" : line;
}

}  // namespace weir::policy
