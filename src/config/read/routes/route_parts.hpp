// Functions that each read one part of a [[route]].
#pragma once

#include "config/read/settings_sections.hpp"

#include "weir/policy/route.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace weir::config {

// Reads `respond`. REQUIRES that the route has the key.
[[nodiscard]] policy::CannedResponse read_respond(const TableReader& route, const ReadContext& context);

// Reads `headers`, `strip_prefix`, `add_prefix` and `rewrite`. Returns null if the route has none of them.
[[nodiscard]] std::shared_ptr<const policy::RouteEdits> read_edits(const TableReader& route,
                                                                   const ReadContext& context);

// The kinds of messages that a route can edit. OwnResponse: a response that weir itself makes (`respond`).
enum class EditedMessage : std::uint8_t { Request, Response, OwnResponse };
// How a route changes a field.
enum class EditKind : std::uint8_t { Set, Add, Remove };

// Reads a table of fields that weir writes: name = "text with {placeholders}".
void read_fields(const TableReader& table, std::string_view key, EditedMessage message,
                 const ReadContext& context, policy::FieldEdits& into);

// Returns why a route must not change a field, and what to write instead. Returns an empty text if the route
// may change it. `name`: a field name, or "PREFIX*" for all fields with this prefix.
[[nodiscard]] std::string_view why_reserved(std::string_view name, EditedMessage message, EditKind kind,
                                            const ReadContext& context);

// Reads a text with placeholders. Reports a mistake at `path` and returns nullopt if it is invalid.
[[nodiscard]] std::optional<policy::TextTemplate> read_template(const TableReader& table, int line,
                                                                const std::string& path,
                                                                std::string_view text,
                                                                const ReadContext& context);

}  // namespace weir::config
