// Reads the `respond` of a [[route]].
#include "config/read/routes/route_parts.hpp"

#include <algorithm>

namespace weir::config {

namespace {

// Returns true for status codes whose responses have no content (RFC 9110 §15.3.5, §15.3.6, §15.4.5).
bool has_no_content(unsigned status) noexcept {
  return status == 204 || status == 205 || status == 304;
}

// Returns true for status codes whose responses name another URL in Location (RFC 9110 §10.2.2).
bool has_location(unsigned status) noexcept {
  constexpr unsigned kStatuses[] = {201, 300, 301, 302, 303, 307, 308};
  return std::find(std::begin(kStatuses), std::end(kStatuses), status) != std::end(kStatuses);
}

void read_location(const TableReader& table, const ReadContext& context, policy::CannedResponse& answer) {
  if (!table.has("location")) return;
  const auto text = table.text("location");
  const auto found = "found " + in_quotes(text);
  if (!has_location(answer.status))
    return table.mistake("location", found + " beside status = " + std::to_string(answer.status) +
                                         ", which redirects nowhere; expected the status 301, 302, 303, 307 "
                                         "or 308");
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (text.empty() || !std::all_of(text.begin(), text.end(), visible))
    return table.mistake("location",
                         found +
                             "; expected a URL without blanks and with other characters than ASCII "
                             "as %XX");
  auto location =
      read_template(table, table.node("location")->line, table.path() + ".location", text, context);
  if (!location) return;
  if (const auto fault = policy::fault_of_location(*location); !fault.empty())
    return table.mistake("location", found + ", but " + fault);
  answer.location = std::move(*location);
}

policy::CannedResponse read_canned(const TableReader& table, const ReadContext& context) {
  policy::CannedResponse answer;
  answer.status = static_cast<unsigned>(table.whole("status"));
  answer.body = table.text("body");
  answer.content_type = table.text("content_type");
  if (has_no_content(answer.status) && !answer.body.empty())
    table.mistake("body", "found beside status = " + std::to_string(answer.status) +
                              ", whose responses have no body; expected no body, or another status");
  if (!is_media_type(answer.content_type))
    table.mistake("content_type",
                  "found " + in_quotes(answer.content_type) + "; expected one such as \"application/json\"");
  read_location(table, context, answer);
  read_fields(table, "headers", EditedMessage::OwnResponse, context, answer.fields);
  return answer;
}

}  // namespace

policy::CannedResponse read_respond(const TableReader& route, const ReadContext& context) {
  const auto& node = *route.node("respond");
  if (node.table() != nullptr)
    return read_canned({&node, node.line, route.path() + ".respond", schema::kRespond, route.source_file()},
                       context);
  const auto* word = node.text();
  if (word == nullptr || *word != "usage")
    route.mistake("respond",
                  "found " + (word != nullptr ? in_quotes(*word) : std::string(type_name(node))) +
                      "; expected { status = 200, body = \"…\" }, or \"usage\" to show each client "
                      "its own limits");
  policy::CannedResponse usage;
  usage.content_type = "application/json";
  usage.usage = true;
  return usage;
}

}  // namespace weir::config
