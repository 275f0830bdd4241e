#include "cli/replay/replay_text.hpp"

#include "weir/observe/json_text.hpp"

#include <algorithm>
#include <ctime>
#include <string_view>

namespace weir::cli {

namespace {

std::string number(std::uint64_t value) {
  return std::to_string(value);
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

// Returns a time such as "2026-02-20T10:00:00Z".
std::string time_text(base::TimePoint at) {
  const std::time_t seconds = std::chrono::floor<std::chrono::seconds>(at).time_since_epoch().count();
  std::tm parts{};
  char text[32];
  gmtime_r(&seconds, &parts);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string plural(std::uint64_t count, std::string_view one) {
  return number(count) + " " + std::string(one) + (count == 1 ? "" : "s");
}

std::string line_words(const replay::Report& report) {
  auto text = plural(report.lines, "line") + ", " + plural(report.requests, "request") + " replayed";
  if (report.resets != 0) text += ", " + plural(report.resets, "reset") + " of a key";
  if (report.requests != 0) text += ", from " + time_text(report.first) + " to " + time_text(report.last);
  text += "\n";
  for (std::size_t i = 0; i < replay::kUnusable; ++i)
    if (report.unusable[i] != 0)
      text += "  " + plural(report.unusable[i], "line") + " left out: " + replay::kUnusableWords[i] + "\n";
  return text;
}

std::string row(std::string_view what, std::uint64_t then, std::uint64_t now) {
  return "  " + std::string(what) + padded(number(then), 12) + " then" + padded(number(now), 12) + " now\n";
}

// Returns a text about a rule in shadow mode, with two numbers. These are the requests that the rule would
// have refused when the log was written, and those that it would refuse in the replay.
std::string shadow_words(const replay::RuleReport& rule) {
  const auto now = rule.shadow ? rule.refused_now : 0;
  std::string text;
  if (rule.shadow_then != 0) text = number(rule.shadow_then) + " would have been refused then";
  if (now != 0) text += (text.empty() ? "" : ", ") + number(now) + " would be refused now";
  return text.empty() ? "" : "  " + text + " (in shadow)\n";
}

std::string rule_words(const replay::RuleReport& rule) {
  auto text = "rule \"" + rule.name + "\"" +
              (rule.in_candidate ? "" : ", which the new configuration does not have") +
              (rule.shadow ? ", in shadow" : "") + "\n";
  if (!rule.left_out.empty()) return text + "  not replayed: " + rule.left_out + "\n";
  if (rule.in_candidate) text += "  matched " + plural(rule.met, "request") + "\n";
  text += row("refused  ", rule.refused_then - rule.shadow_then, rule.shadow ? 0 : rule.refused_now);
  text += shadow_words(rule);
  text += "  newly refused " + number(rule.newly.refused) + ", newly admitted " +
          number(rule.newly.admitted) + "\n";
  std::size_t widest = 0;
  for (const auto& client : rule.clients) widest = std::max(widest, client.client.size());
  for (const auto& client : rule.clients)
    text += "    " + client.client + std::string(widest - client.client.size(), ' ') +
            padded(number(client.newly.refused), 10) + " newly refused" +
            padded(number(client.newly.admitted), 10) + " newly admitted" +
            (client.digest.empty() ? "" : "  " + client.digest) + "\n";
  return text;
}

// Appends a JSON object to `out`. Puts a comma before each member except the first one.
class JsonObject {
 public:
  explicit JsonObject(std::string& out) : out_(out) { out_ += '{'; }
  ~JsonObject() { out_ += '}'; }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;

  std::string& name(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += '"';
    out_ += name;
    out_ += "\":";
    return out_;
  }
  void put(std::string_view name, std::uint64_t value) { this->name(name) += number(value); }
  void put(std::string_view name, bool value) { this->name(name) += value ? "true" : "false"; }
  void put(std::string_view name, const std::string& text) {
    observe::append_json_text(this->name(name), text);
  }

 private:
  std::string& out_;
  bool first_ = true;
};

template <class List, class Each>
void append_list(std::string& out, const List& list, Each each) {
  out += '[';
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i != 0) out += ',';
    each(list[i]);
  }
  out += ']';
}

void put(JsonObject& object, const replay::Changes& newly) {
  object.put("newly_refused", newly.refused);
  object.put("newly_admitted", newly.admitted);
}

void append_rule(std::string& out, const replay::RuleReport& rule) {
  JsonObject object(out);
  object.put("rule", rule.name);
  object.put("in_candidate", rule.in_candidate);
  object.put("shadow", rule.shadow);
  if (!rule.left_out.empty()) object.put("left_out", rule.left_out);
  object.put("met", rule.met);
  object.put("refused_then", rule.refused_then);
  object.put("refused_now", rule.refused_now);
  object.put("shadow_refused_then", rule.shadow_then);
  object.put("otherwise", rule.otherwise);
  put(object, rule.newly);
  append_list(object.name("clients"), rule.clients, [&](const replay::ClientChanges& client) {
    JsonObject entry(out);
    entry.put("client", client.client);
    if (!client.digest.empty()) entry.put("digest", client.digest);
    put(entry, client.newly);
  });
}

}  // namespace

std::string to_text(const replay::Report& report) {
  auto text = line_words(report);
  if (report.requests == 0) return text;
  text += row("admitted ", report.admitted_then, report.admitted_now);
  text += row("refused  ", report.refused_then, report.refused_now);
  text += "  newly refused " + number(report.newly.refused) + ", newly admitted " +
          number(report.newly.admitted) + "\n";
  for (const auto& rule : report.rules) text += "\n" + rule_words(rule);
  if (!report.notes.empty()) text += "\n";
  for (const auto& note : report.notes) text += "note: " + note + "\n";
  return text;
}

std::string to_json(const replay::Report& report) {
  std::string out;
  {
    JsonObject object(out);
    object.put("lines", report.lines);
    object.put("requests", report.requests);
    object.put("resets", report.resets);
    {
      JsonObject unusable(object.name("left_out"));
      for (std::size_t i = 0; i < replay::kUnusable; ++i)
        if (report.unusable[i] != 0) {
          std::string name;
          observe::append_json_text(name, replay::kUnusableWords[i]);
          unusable.put(std::string_view(name).substr(1, name.size() - 2), report.unusable[i]);
        }
    }
    if (report.requests != 0) {
      object.put("first", time_text(report.first));
      object.put("last", time_text(report.last));
    }
    object.put("admitted_then", report.admitted_then);
    object.put("admitted_now", report.admitted_now);
    object.put("refused_then", report.refused_then);
    object.put("refused_now", report.refused_now);
    put(object, report.newly);
    append_list(object.name("rules"), report.rules, [&](const auto& rule) { append_rule(out, rule); });
    append_list(object.name("notes"), report.notes,
                [&](const std::string& note) { observe::append_json_text(out, note); });
  }
  return out + "\n";
}

}  // namespace weir::cli
