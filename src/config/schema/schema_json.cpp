#include "weir/config/schema_json.hpp"

#include "config/schema/json_layout.hpp"
#include "config/schema/schema.hpp"
#include "config/schema/schema_patterns.hpp"

#include <map>

#include <boost/json/parse.hpp>

namespace weir::config {

namespace {

namespace json = boost::json;

// The form of all strings of one kind of key. Editors check strings by `pattern` and show `about`.
struct StringForm {
  Kind kind;
  std::string_view name;
  std::string_view pattern;
  std::string_view about;
  std::int64_t least = -1;  // if not negative: whole numbers of `least` or more are valid too
};
constexpr StringForm kStringForms[] = {
    {Kind::Duration, "duration", pattern::kDuration,
     "a whole number with a unit: us, ms, s (or sec), min (or m), h (or hour), day (or d, days), such as "
     "\"250ms\""},
    {Kind::Size, "size", pattern::kSize,
     "a whole number with a unit: B, kB, MB, GB, KiB, MiB, GiB, such as \"64KiB\"; or a number of bytes", 0},
    {Kind::Rate, "rate", pattern::kRate,
     "COUNT/PERIOD, where the period is a duration or a unit alone, such as \"10/s\" or \"20/10s\""},
    {Kind::Limit, "limit", pattern::kLimit,
     "a rate such as \"10/s\" or \"20/10s\", or \"COUNT/week\" or \"COUNT/month\" with align; for "
     "concurrency, a whole number",
     1},
    {Kind::Address, "address", pattern::kAddress, "host:port, [v6]:port or unix:/path"},
};
constexpr std::int64_t kMostInLimit = 1'000'000'000;

const StringForm* form_of(Kind kind) noexcept {
  for (const auto& form : kStringForms)
    if (form.kind == kind) return &form;
  return nullptr;
}

json::object reference(std::string_view name) {
  return {{"$ref", "#/definitions/" + std::string(name)}};
}

json::object text_like(std::string_view pattern) {
  json::object text{{"type", "string"}};
  if (!pattern.empty()) text["pattern"] = whole_text(pattern);
  return text;
}

json::object definition(const StringForm& form) {
  const auto text = text_like(form.pattern);
  if (form.least < 0) {
    json::object one{{"description", form.about}};
    one.insert(text.begin(), text.end());
    return one;
  }
  json::object number{{"type", "integer"}, {"minimum", form.least}};
  if (form.kind == Kind::Limit) number["maximum"] = kMostInLimit;
  return {{"description", form.about}, {"anyOf", json::array{text, number}}};
}

json::object choice(const KeySpec& key) {
  json::array words;
  for (const auto& one : key.choices) words.emplace_back(one.word);
  return {{"anyOf", json::array{json::object{{"enum", std::move(words)}}, reference("environment")}}};
}

json::object list_of(json::value element) {
  return {{"type", "array"}, {"items", std::move(element)}};
}

json::value default_of(const KeySpec& key) {
  const std::string_view text = key.fallback;
  if (key.kind == Kind::Bool || key.kind == Kind::Whole || key.kind == Kind::Mixed) return json::parse(text);
  if (key.kind != Kind::Texts) return json::value(text);
  json::array words;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(' ', at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Writes a definition for every table below the root. The name of a definition is the path at which the table
// occurs first.
class Writer {
 public:
  json::object document() {
    json::object document{{"$schema", "http://json-schema.org/draft-04/schema#"},
                          {"title", "weir's configuration"}};
    const auto root = table(schema::kRoot, "");
    document.insert(root.begin(), root.end());
    definitions_["environment"] = {
        {"description", "a text that contains environment variables: ${NAME}, or ${NAME:-default}"},
        {"type", "string"},
        {"pattern", "\\$\\{"}};
    for (const auto& form : kStringForms) definitions_[form.name] = definition(form);
    document["definitions"] = std::move(definitions_);
    return document;
  }

 private:
  json::object table(const TableSpec& spec, const std::string& path) {
    json::object properties;
    json::array required;
    for (const auto& key : spec.keys) {
      if (!key.instead.empty()) continue;
      properties[key.name] =
          property(key, path.empty() ? std::string(key.name) : path + "." + std::string(key.name));
      if (key.required) required.emplace_back(key.name);
    }
    json::object table{{"type", "object"}, {"additionalProperties", false}};
    if (!required.empty()) table["required"] = std::move(required);
    table["properties"] = std::move(properties);
    return table;
  }

  json::object property(const KeySpec& key, const std::string& path) {
    json::object property;
    if (!key.about.empty()) property["description"] = key.about;
    if (!key.fallback.empty()) property["default"] = default_of(key);
    auto what = shape(key, path);
    // Puts the $ref into an allOf, because JSON Schema ignores all members beside a $ref, such as the
    // description.
    if (what.contains("$ref")) what = {{"allOf", json::array{std::move(what)}}};
    property.insert(what.begin(), what.end());
    return property;
  }

  json::object shape(const KeySpec& key, const std::string& path) {
    switch (key.kind) {
      case Kind::Bool:
        return {{"type", "boolean"}};
      case Kind::Whole:
        return {{"type", "integer"}, {"minimum", key.least}, {"maximum", key.most}};
      case Kind::Text:
        return text_like(key.pattern);
      case Kind::Choice:
        return choice(key);
      case Kind::Duration:
      case Kind::Size:
      case Kind::Rate:
      case Kind::Limit:
      case Kind::Address:
        return reference(form_of(key.kind)->name);
      case Kind::Texts:
        return list_of(text_like(key.pattern));
      case Kind::OneOrMore:
        return {{"anyOf", json::array{text_like(key.pattern), list_of(text_like(key.pattern))}}};
      case Kind::Subtable:
        return reference(name_of(*key.inner, path));
      case Kind::Subtables:
        return list_of(reference(name_of(*key.inner, path)));
      case Kind::OneOrMoreTables:
        return {{"anyOf", json::array{reference(name_of(*key.inner, path)),
                                      list_of(reference(name_of(*key.inner, path)))}}};
      case Kind::Named:
        return {{"type", "object"}, {"additionalProperties", any_shape(*key.inner, path)}};
      case Kind::Each:
        return list_of(any_shape(*key.inner, path));
      case Kind::Share:
        return {{"type", "number"},
                {"minimum", static_cast<double>(key.least) / 100},
                {"maximum", static_cast<double>(key.most) / 100}};
      case Kind::Present:
        return {{"enum", json::array{true}}};
      case Kind::Mixed:
        break;
    }
    return any_shape(*key.inner, path);
  }

  json::object any_shape(const TableSpec& shapes, const std::string& path) {
    json::array any;
    for (const auto& one : shapes.keys) any.push_back(shape(one, path));
    if (any.size() == 1) return any.front().get_object();
    return {{"anyOf", std::move(any)}};
  }

  const std::string& name_of(const TableSpec& spec, const std::string& path) {
    const auto [known, fresh] = names_.emplace(&spec, path);
    if (fresh) {
      definitions_[path] = nullptr;  // inserted first, so that the definitions of inner tables come after it
      definitions_[path] = table(spec, path);
    }
    return known->second;
  }

  std::map<const TableSpec*, std::string> names_;
  json::object definitions_;
};

}  // namespace

std::string whole_text(std::string_view pattern) {
  return "\\$\\{|^(?:" + std::string(pattern) + ")$";
}

std::string schema_as_json() {
  return laid_out(Writer().document());
}

}  // namespace weir::config
