// The tables of keys in docs/limiters.md, docs/upstreams.md, docs/alerts.md, docs/http2.md,
// docs/browsers.md and docs/routes.md must contain exactly the keys of the schema, with types, bounds and
// defaults.
#include "config/schema/schema.hpp"
#include "unit/config/document.hpp"

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Described {
  const char* document;
  const char* heading;
  const TableSpec* spec;
};
constexpr const char* kLimiters = "limiters.md";
constexpr const char* kUpstreams = "upstreams.md";
constexpr const char* kRoutes = "routes.md";
constexpr Described kDescribed[] = {
    {kLimiters, "Keys of `[[rule]]`", &schema::kRule},
    {kLimiters, "Keys of `match`", &schema::kMatch},
    {kLimiters, "Keys of `cost`", &schema::kCost},
    {kLimiters, "Keys of `reserve`", &schema::kReserve},
    {kLimiters, "Keys of `stream`", &schema::kStream},
    {kLimiters, "Keys of `charge`", &schema::kCharge},
    {kLimiters, "Keys of `elastic`", &schema::kElastic},
    {kLimiters, "Keys of `adapt`", &schema::kAdapt},
    {kLimiters, "Keys of `penalty`", &schema::kPenalty},
    {kLimiters, "Keys of a tier", &schema::kTier},
    {kLimiters, "Keys of an override", &schema::kOverride},
    {kLimiters, "Keys of `fetch`", &schema::kKeyFetch},
    {kUpstreams, "Keys of `[[upstream]]`", &schema::kUpstream},
    {kUpstreams, "Keys of a server", &schema::kServerOfUpstream},
    {kUpstreams, "Keys of `timeouts`", &schema::kTimeouts},
    {kUpstreams, "Keys of `tls`", &schema::kUpstreamTls},
    {kUpstreams, "Keys of `eject`", &schema::kEject},
    {kUpstreams, "Keys of `health`", &schema::kHealth},
    {kUpstreams, "Keys of `retry`", &schema::kRetry},
    {"alerts.md", "Keys of `[[alert]]`", &schema::kAlert},
    {"http2.md", "Keys of `http2`", &schema::kHttp2},
    {"acme.md", "Keys of `[acme]`", &schema::kAcme},
    {"acme.md", "Keys of `external_account`", &schema::kExternalAccount},
    {"browsers.md", "Keys of `[cors]`", &schema::kCors},
    {"observability.md", "Keys of `[tracing]`", &schema::kTracing},
    {kRoutes, "Keys of `[[route]]`", &schema::kRoute},
    {kRoutes, "Keys of `respond`", &schema::kRespond},
    {kRoutes, "Keys of `headers`", &schema::kHeaders},
    {kRoutes, "Keys of `headers.request` and `headers.response`", &schema::kFieldEdits},
    {kRoutes, "Keys of `rewrite`", &schema::kRewrite},
};

std::string quoted(std::string_view text) {
  return "`" + std::string(text) + "`";
}

// Returns the number with an underscore before each group of three digits, as TOML allows: `1_000_000`.
std::string grouped(std::int64_t number) {
  auto text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), "_");
  return text;
}

std::string type_of(const KeySpec& key) {
  switch (key.kind) {
    case Kind::Bool:
      return "true or false";
    case Kind::Whole:
      return "whole number, " + grouped(key.least) + " to " + grouped(key.most);
    case Kind::Text:
      return "text";
    case Kind::Choice:
      return "one of";
    case Kind::Duration:
      return "duration";
    case Kind::Size:
      return "size";
    case Kind::Rate:
      return "rate";
    case Kind::Limit:
      return "rate, or whole number";
    case Kind::Texts:
      return "list of texts";
    case Kind::OneOrMore:
      return "text, or list of texts";
    case Kind::Subtable:
      return "table";
    case Kind::Subtables:
      return "list of tables";
    case Kind::OneOrMoreTables:
      return "table, or list of tables";
    case Kind::Named:
      return "table of names";
    case Kind::Address:
    case Kind::Mixed:
    case Kind::Each:
    case Kind::Share:
    case Kind::Present:
      break;
  }
  return "";  // the table shows no values for keys of these types
}

const DocumentTable* table_of(const std::vector<Section>& document, std::string_view heading) {
  for (const auto& section : document)
    if (section.heading == heading && section.tables.size() == 1) return &section.tables.front();
  return nullptr;
}

const Cells* row_of(const DocumentTable& table, const KeySpec& key) {
  for (const auto& row : table.rows)
    if (table.cell(row, "key") == quoted(key.name)) return &row;
  return nullptr;
}

void expect_described(const DocumentTable& table, const KeySpec& key) {
  const auto* row = row_of(table, key);
  ASSERT_NE(row, nullptr) << "the key has no row";
  const auto type = table.cell(*row, "type");
  EXPECT_THAT(type, StartsWith(type_of(key)));
  for (const auto& choice : key.choices) EXPECT_THAT(type, HasSubstr(quoted(choice.word)));
  const auto fallback = table.cell(*row, "default");
  EXPECT_FALSE(fallback.empty());
  EXPECT_THAT(fallback, HasSubstr(std::string(key.fallback)));
  EXPECT_EQ(fallback == "required", key.required);
  EXPECT_FALSE(table.cell(*row, "what it does").empty());
}

TEST(DocumentedKeys, IncludeEveryKeyOfTheSchema) {
  for (const auto& [name, heading, spec] : kDescribed) {
    SCOPED_TRACE(heading);
    const auto sections = document(name);
    const auto* table = table_of(sections, heading);
    ASSERT_NE(table, nullptr);
    for (const auto& key : spec->keys) {
      SCOPED_TRACE(key.name);
      if (key.instead.empty()) expect_described(*table, key);
    }
  }
}

TEST(DocumentedKeys, IncludeOnlyKeysOfTheSchema) {
  for (const auto& [name, heading, spec] : kDescribed) {
    const auto sections = document(name);
    const auto* table = table_of(sections, heading);
    ASSERT_NE(table, nullptr) << heading;
    for (const auto& row : table->rows) {
      const auto said = table->cell(row, "key");
      const auto* key = spec->find(said.substr(1, said.size() - 2));
      EXPECT_TRUE(key != nullptr && key->instead.empty()) << heading << ": " << said;
    }
  }
}

}  // namespace
}  // namespace weir::config::test
