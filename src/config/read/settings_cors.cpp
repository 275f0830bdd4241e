// Reads [cors].
#include "config/read/settings_sections.hpp"

#include <algorithm>

namespace weir::config {

namespace {

// the enumerators are in the order of the schema's choices
enum class Preflight : std::uint8_t { Forward, Answer };

void read_origins(const TableReader& table, http::CorsSettings& cors) {
  const auto texts = table.texts("origins");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i] == "*") {
      cors.any_origin = true;
      continue;
    }
    auto origin = http::parse_origin(texts[i]);
    if (!origin) {
      table.mistake_in("origins", i, origin.error().message);
      continue;
    }
    cors.origins.push_back(std::move(*origin));
  }
  if (cors.any_origin && texts.size() > 1)
    table.mistake("origins", "found \"*\" beside origins; expected [\"*\"] for all, or a list without it");
  if (table.has("origins") && texts.empty())
    table.mistake("origins",
                  "found none; expected [\"https://app.example.com\"], or remove the table [cors]");
}

}  // namespace

std::optional<http::CorsSettings> read_cors(const TableReader& root) {
  if (!root.has("cors")) return std::nullopt;
  const auto table = root.table("cors", schema::kCors);
  http::CorsSettings cors;
  read_origins(table, cors);
  cors.credentials = table.boolean("credentials");
  if (cors.credentials && cors.any_origin)
    table.mistake("credentials",
                  "found beside origins = [\"*\"], which would let every site read answers to your users' "
                  "cookies; expected a list of origins");
  cors.max_age = table.duration("max_age");
  cors.answers_preflights = table.choice<Preflight>("preflight") == Preflight::Answer;
  return cors;
}

}  // namespace weir::config
