#include "weir/ask/answer_json.hpp"

#include "weir/base/plain_number.hpp"
#include "weir/observe/json_text.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

#include <boost/container/small_vector.hpp>

namespace weir::ask {

namespace {

void append_text(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out.append(",\"").append(name).append("\":");
  observe::append_json_text(out, text);
}

void append_number(std::string& out, std::string_view name, std::uint64_t number) {
  out.append(",\"").append(name).append("\":").append(std::to_string(number));
}

// Appends the member `name` with the duration in seconds, not rounded.
void append_seconds(std::string& out, std::string_view name, base::Duration duration) {
  out.append(",\"").append(name).append("\":");
  out += base::plain_number(static_cast<double>(duration.count()) / 1e6);
}

struct Line {
  std::string_view name;
  std::string_view value;
};

using Lines = boost::container::small_vector<Line, 16>;

Lines lines_of(std::string_view fields) {
  Lines lines;
  while (!fields.empty()) {
    const auto line = fields.substr(0, fields.find("\r\n"));
    const auto colon = line.find(": ");
    if (colon != std::string_view::npos) lines.push_back({line.substr(0, colon), line.substr(colon + 2)});
    fields.remove_prefix(std::min(line.size() + 2, fields.size()));
  }
  return lines;
}

// Appends the values of all lines with this name: a text, or an array if there are several.
void append_values(std::string& out, std::span<const Line> lines, std::string_view name) {
  const auto has_name = [&](const Line& line) { return line.name == name; };
  const bool several = std::count_if(lines.begin(), lines.end(), has_name) > 1;
  char before = '[';
  for (const auto& line : lines) {
    if (!has_name(line)) continue;
    if (several) out += std::exchange(before, ',');
    observe::append_json_text(out, line.value);
  }
  if (several) out += ']';
}

void append_headers(std::string& out, std::string_view fields) {
  const auto lines = lines_of(fields);
  out += R"(,"headers":{)";
  bool first = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto before = std::span(lines).first(i);
    const auto same = [&](const Line& line) { return line.name == lines[i].name; };
    if (std::any_of(before.begin(), before.end(), same)) continue;
    if (!std::exchange(first, false)) out += ',';
    observe::append_json_text(out, lines[i].name);
    out += ':';
    append_values(out, std::span(lines).subspan(i), lines[i].name);
  }
  out += '}';
}

}  // namespace

void append_answer_json(std::string& out, const Answer& answer) {
  out += answer.allowed ? R"({"allowed":true,"status":)" : R"({"allowed":false,"status":)";
  out += std::to_string(answer.status);
  append_text(out, "error", answer.error);
  append_text(out, "rule", answer.rule);
  if (answer.limit) append_number(out, "limit", *answer.limit);
  if (answer.remaining) append_number(out, "remaining", *answer.remaining);
  if (answer.retry_after_seconds) append_number(out, "retry_after_seconds", *answer.retry_after_seconds);
  if (answer.reset_after)
    append_number(out, "reset_after_seconds",
                  static_cast<std::uint64_t>(base::ceil_seconds(*answer.reset_after)));
  if (answer.allowed) append_seconds(out, "wait_seconds", answer.wait);
  append_headers(out, answer.fields);
  append_text(out, "content_type", answer.body.empty() ? std::string_view{} : answer.content_type);
  append_text(out, "body", answer.body);
  append_text(out, "permit", answer.permit);
  out += '}';
}

void append_answers_json(std::string& out, std::span<const Answer> answers) {
  out += '[';
  for (const auto& answer : answers) {
    if (&answer != answers.data()) out += ',';
    append_answer_json(out, answer);
  }
  out += ']';
}

}  // namespace weir::ask
