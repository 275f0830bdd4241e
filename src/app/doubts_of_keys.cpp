// Keys of rules that do not tell clients apart as their writers probably mean.
#include "app/doubts.hpp"
#include "app/overlap.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace weir::app {

namespace {

using policy::Attribute;

// What every request has: of the alternatives behind it none is looked at.
bool is_of_every(const policy::AttributeRef& attribute) {
  constexpr Attribute kOfEvery[] = {Attribute::Ip, Attribute::Method, Attribute::Path};
  return std::find(std::begin(kOfEvery), std::end(kOfEvery), attribute.kind) != std::end(kOfEvery);
}

bool takes_api_key(const policy::KeyPart& part) {
  for (const auto& attribute : part) {
    if (attribute.kind == Attribute::ApiKey) return true;
    if (is_of_every(attribute)) break;
  }
  return false;
}

// Whether a client that invents an API key gets a state of its own: whatever the other parts of the key are.
bool rests_on_api_key(const policy::Rule& rule) {
  return std::any_of(rule.key.begin(), rule.key.end(), takes_api_key);
}

// Whether an API key is believed that nobody has checked.
bool can_invent_keys(const policy::ClientSettings& client) {
  return !client.keys || client.unknown_keys == policy::UnknownKeys::Accept;
}

void doubt_invented_keys(const Settings& settings, Doubts& doubts) {
  const auto& client = settings.client;
  if (!can_invent_keys(client)) return;
  for (const auto& rule : settings.rules)
    if (rests_on_api_key(rule))
      doubts.add(rule,
                 std::string("tells clients apart by API keys, and ") +
                     (client.keys ? "unknown ones are accepted" : "no [client] keys file says which exist") +
                     ": who invents keys gets a fresh limit with each");
}

std::string text_of(const policy::KeyPart& part) {
  std::string text;
  for (const auto& attribute : part) text += (text.empty() ? "" : "|") + policy::describe(attribute);
  return in_quotes(text);
}

// What the writer of a fallback perhaps meant whose rest is never looked at: the rest before what every
// request has, or where all of it is such, both together.
std::string perhaps(const policy::KeyPart& part) {
  policy::KeyPart first, last;
  for (const auto& attribute : part) (is_of_every(attribute) ? last : first).push_back(attribute);
  if (first.empty()) {
    std::string both;
    for (const auto& attribute : last) both += (both.empty() ? "" : ", ") + text_of({attribute});
    return "[" + both + "], all of them together";
  }
  first.push_back(last.front());
  return text_of(first);
}

// Every request has what stands before the last alternative, which is never looked at.
void doubt_fallbacks(const policy::Rule& rule, Doubts& doubts) {
  for (const auto& part : rule.key) {
    const auto present = std::find_if(part.begin(), part.end(), is_of_every);
    if (part.end() - present < 2) continue;
    doubts.add(rule, "is keyed by " + text_of(part) + ", and every request has " +
                         (present->kind == Attribute::Ip ? "an " : "a ") + policy::describe(*present) + ": " +
                         text_of({present + 1, part.end()}) + " is never looked at; did you mean " +
                         perhaps(part) + "?");
  }
}

// By what clients write as they like, or invent.
bool is_chosen(Attribute attribute) {
  constexpr Attribute kChosen[] = {Attribute::Header, Attribute::Query, Attribute::Cookie, Attribute::Path,
                                   Attribute::Device};
  return std::find(std::begin(kChosen), std::end(kChosen), attribute) != std::end(kChosen);
}

// The first part by which a client that makes values up gets a state of its own; null where there is none.
const policy::KeyPart* chosen_part(const policy::Rule& rule) {
  const auto is_one = [](const policy::KeyPart& part) {
    const auto last = std::find_if(part.begin(), part.end(), is_of_every);
    const auto looked_at = last == part.end() ? last : last + 1;
    return std::any_of(part.begin(), looked_at,
                       [](const policy::AttributeRef& ref) { return is_chosen(ref.kind); });
  };
  const auto found = std::find_if(rule.key.begin(), rule.key.end(), is_one);
  return found != rule.key.end() ? &*found : nullptr;
}

// Whether no client can be without a part of the key, and so without the rule.
bool applies_to_all(const policy::Rule& rule) {
  return rule.on_missing != policy::OnMissing::Skip ||
         std::all_of(rule.key.begin(), rule.key.end(), [](const policy::KeyPart& part) {
           return std::any_of(part.begin(), part.end(), is_of_every);
         });
}

// Whether another rule bounds what such a client can do, of all requests that this one meets.
bool is_bounded(const policy::Rule& rule, const Settings& settings) {
  return std::any_of(settings.rules.begin(), settings.rules.end(), [&](const policy::Rule& other) {
    return other.mode == policy::Mode::Enforce && chosen_part(other) == nullptr && applies_to_all(other) &&
           !(can_invent_keys(settings.client) && rests_on_api_key(other)) &&
           plainly_covers(other.match, rule.match);
  });
}

void doubt_chosen_keys(const Settings& settings, Doubts& doubts) {
  for (const auto& rule : settings.rules) {
    const auto* part = chosen_part(rule);
    if (part != nullptr && !is_bounded(rule, settings))
      doubts.add(rule,
                 "is keyed by " + text_of(*part) +
                     ", which clients write as they like: each value made up gets a fresh limit. A rule "
                     "beside it for the same requests with key = [\"ip\"] would bound that");
  }
}

bool can_be_known(Attribute attribute, const policy::ClientSettings& client) {
  const auto told = [](const policy::Source& source) { return source.kind != policy::Source::Kind::None; };
  switch (attribute) {
    case Attribute::User:
      return told(client.user) || client.keys;
    case Attribute::Org:
      return told(client.org) || client.keys;
    case Attribute::Service:
      return told(client.service) || client.keys;
    case Attribute::Tier:
      return client.keys.has_value();
    case Attribute::Device:
      return told(client.device);
    default:
      return true;
  }
}

void doubt_key(const policy::Rule& rule, const policy::ClientSettings& client, Doubts& doubts) {
  for (const auto& part : rule.key)
    if (std::none_of(part.begin(), part.end(),
                     [&](const policy::AttributeRef& ref) { return can_be_known(ref.kind, client); }))
      doubts.add(rule, "is keyed by " + text_of(part) +
                           ", which no request has: [client] does not say where it is found");
}

}  // namespace

void doubt_keys(const Settings& settings, Doubts& doubts) {
  doubt_invented_keys(settings, doubts);
  doubt_chosen_keys(settings, doubts);
  for (const auto& rule : settings.rules) {
    doubt_key(rule, settings.client, doubts);
    doubt_fallbacks(rule, doubts);
  }
}

}  // namespace weir::app
