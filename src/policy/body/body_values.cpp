#include "weir/policy/body_values.hpp"

#include "policy/body/decimal.hpp"
#include "policy/body/json_numbers.hpp"
#include "policy/identity/consistent_value.hpp"
#include "policy/rules/pieces.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>

namespace weir::policy {

namespace {

namespace json = boost::json;
using Text = json::string_view;
using Fault = json::error_code;

// Returns the one spelling of a JSON number: without an exponent, and without zeros at the end of a fraction.
std::string spelled(std::string_view number) {
  const bool negative = number.starts_with('-');
  auto digits = plain_digits(number.substr(negative ? 1 : 0));
  if (!digits) return std::string(number);  // the number was cut to kLongestBodyValue
  if (digits->find('.') != std::string::npos) {
    digits->erase(digits->find_last_not_of('0') + 1);
    if (digits->ends_with('.')) digits->pop_back();
  }
  return negative && *digits != "0" ? "-" + *digits : *digits;
}

// Returns true if a Content-Type field names the media type. Ignores the parameters of the type.
bool has_type(const http::Fields& fields, std::string_view type) noexcept {
  return std::any_of(fields.begin(), fields.end(), [&](const http::Field& field) {
    if (!http::equal_ignoring_case(field.name, "Content-Type")) return false;
    const auto said = field.value.substr(0, field.value.find_first_of(";,"));
    return http::equal_ignoring_case(trimmed(said), type);
  });
}

constexpr std::string_view kForm = "application/x-www-form-urlencoded";

bool is_form(const http::Fields& fields) noexcept {
  return has_type(fields, kForm) || has_type(fields, "multipart/form-data");
}

}  // namespace

// The handler for the events of the JSON parser. It follows all pointers through the document.
class BodyJsonWalk {
 public:
  static constexpr auto max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr auto max_object_size = max_array_size;
  static constexpr auto max_string_size = max_array_size;
  static constexpr auto max_key_size = max_array_size;

  BodyJsonWalk(const BodyNames& names, std::vector<BodyValues::Value>& values)
      : names_(names), values_(values), met_(names.nodes_.size()) {}

  bool on_document_begin(Fault&) { return true; }
  bool on_document_end(Fault&) { return true; }
  bool on_object_begin(Fault&) { return open(false); }
  bool on_array_begin(Fault&) { return open(true); }
  bool on_object_end(std::size_t, Fault&) { return close(); }
  bool on_array_end(std::size_t, Fault&) { return close(); }
  bool on_key_part(Text text, std::size_t, Fault&) { return hear(text); }
  bool on_key(Text text, std::size_t, Fault&) {
    (void)hear(text);
    const auto around = open_.back().node;
    named_ = around == BodyNames::kNone ? BodyNames::kNone : names_.child(around, heard_);
    if (named_ != BodyNames::kNone) {
      const auto node = static_cast<std::size_t>(named_);
      if (met_[node]) mark_repeated(named_);
      met_[node] = true;
    }
    heard_.clear();
    return true;
  }
  bool on_string_part(Text text, std::size_t, Fault&) { return hear(text); }
  bool on_string(Text text, std::size_t, Fault&) { return hear(text) && meet(false); }
  bool on_number_part(Text text, Fault&) { return hear(text); }
  bool on_int64(std::int64_t, Text text, Fault&) { return hear(text) && meet(true); }
  bool on_uint64(std::uint64_t, Text text, Fault&) { return hear(text) && meet(true); }
  bool on_double(double, Text text, Fault&) { return hear(text) && meet(true); }
  bool on_bool(bool value, Fault&) { return hear(value ? "true" : "false") && meet(false); }
  bool on_null(Fault&) { return meet(false); }
  bool on_comment_part(Text, Fault&) { return true; }
  bool on_comment(Text, Fault&) { return true; }

 private:
  // An object or array that the parser has begun and not yet finished.
  struct Open {
    bool array;
    int node;               // kNone: no pointer leads into this object or array
    std::size_t count = 0;  // array: number of elements so far
  };

  bool hear(Text text) {
    const bool asked = open_.empty() || open_.back().node != BodyNames::kNone;
    if (asked) heard_.append(text.data(), std::min(text.size(), kLongestBodyValue - heard_.size()));
    return true;
  }
  // Returns the node of the value that begins here; kNone if no pointer leads there.
  int step() {
    if (open_.empty()) return 0;
    auto& around = open_.back();
    if (!around.array) return named_;
    const auto index = around.count++;
    return around.node == BodyNames::kNone ? around.node : names_.child(around.node, std::to_string(index));
  }
  bool open(bool array) {
    open_.push_back({array, step()});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool meet(bool number) {
    const auto node = step();
    const auto value = node == BodyNames::kNone ? node : names_.nodes_[static_cast<std::size_t>(node)].value;
    if (value != BodyNames::kNone)
      values_[static_cast<std::size_t>(value)].text = number ? spelled(heard_) : heard_;
    heard_.clear();
    return true;
  }
  void mark_repeated(int at) {
    const auto& node = names_.nodes_[static_cast<std::size_t>(at)];
    if (node.value != BodyNames::kNone) values_[static_cast<std::size_t>(node.value)].repeated = true;
    for (const auto& [name, below] : node.children) mark_repeated(below);
  }

  const BodyNames& names_;
  std::vector<BodyValues::Value>& values_;
  std::vector<bool> met_;  // for each node: the document has the member
  std::vector<Open> open_;
  std::string heard_;             // the beginning of the current key or value, which may arrive in pieces
  int named_ = BodyNames::kNone;  // the node of the last key that the parser has read
};

void BodyNames::add_pointer(std::string_view pointer) {
  if (std::find(pointers_.begin(), pointers_.end(), pointer) != pointers_.end()) return;
  std::size_t at = 0;
  for (auto& name : names_in_pointer(pointer)) {
    auto next = child(static_cast<int>(at), name);
    if (next == kNone) {
      next = static_cast<int>(nodes_.size());
      nodes_[at].children.emplace_back(std::move(name), next);
      nodes_.emplace_back();
    }
    at = static_cast<std::size_t>(next);
  }
  nodes_[at].value = static_cast<int>(pointers_.size());
  pointers_.emplace_back(pointer);
}

void BodyNames::add_field(std::string_view name) {
  if (std::find(fields_.begin(), fields_.end(), name) == fields_.end()) fields_.emplace_back(name);
}

int BodyNames::child(int node, std::string_view name) const noexcept {
  const auto& children = nodes_[static_cast<std::size_t>(node)].children;
  const auto found =
      std::find_if(children.begin(), children.end(), [&](const auto& one) { return one.first == name; });
  return found == children.end() ? kNone : found->second;
}

void BodyValues::read(const BodyNames& names, const http::Fields& fields, std::string_view body) {
  clear();
  names_ = &names;
  if (body.empty()) return;
  if (!names.pointers_.empty()) read_json(fields, body);
  if (!names.fields_.empty() && has_type(fields, kForm)) read_form(body);
}

void BodyValues::clear() noexcept {
  names_ = nullptr;
  fault_ = JsonFault::None;
  json_.clear();
  fields_.clear();
}

// The Content-Type does not decide whether a body is JSON: a server may read JSON whatever the type says.
void BodyValues::read_json(const http::Fields& fields, std::string_view body) {
  json_.resize(names_->pointers_.size());
  json::parse_options options;
  options.max_depth = kDeepestJson;
  json::basic_parser<BodyJsonWalk> parser(options, *names_, json_);
  Fault fault;
  const auto used = parser.write_some(false, body.data(), body.size(), fault);
  if (body.starts_with("\xef\xbb\xbf"))
    fault_ = JsonFault::ByteOrderMark;
  else if (fault == json::error::too_deep)
    fault_ = JsonFault::TooDeep;
  else if (fault == json::error::incomplete)
    fault_ = JsonFault::Incomplete;
  else if (fault)
    fault_ = JsonFault::Malformed;
  else if (used != body.size())
    fault_ = JsonFault::Trailing;
  if (fault_ == JsonFault::None) return;
  json_.clear();
  if (is_form(fields)) fault_ = JsonFault::None;
}

void BodyValues::read_form(std::string_view body) {
  fields_.resize(names_->fields_.size());
  std::vector<bool> met(fields_.size());
  std::string scratch;
  while (!body.empty()) {
    const auto said = name_value(take_piece(body, '&'));
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!is_parameter(said.name, names_->fields_[i])) continue;
      if (met[i]) fields_[i].repeated = true;
      if (met[i]) continue;
      met[i] = true;
      const auto value = http::percent_decoded(said.value, scratch, http::Plus::Blank);
      fields_[i].text = value.substr(0, kLongestBodyValue);
    }
  }
}

const BodyValues::Value* BodyValues::find(const std::vector<std::string>& names,
                                          const std::vector<Value>& values, std::string_view name) noexcept {
  const auto found = std::find(names.begin(), names.end(), name);
  const auto at = static_cast<std::size_t>(found - names.begin());
  return at < values.size() ? &values[at] : nullptr;
}

std::string_view BodyValues::json(std::string_view pointer) const noexcept {
  const auto* value = names_ != nullptr ? find(names_->pointers_, json_, pointer) : nullptr;
  return value != nullptr ? std::string_view(value->text) : std::string_view{};
}

std::string_view BodyValues::field(std::string_view name) const noexcept {
  const auto* value = names_ != nullptr ? find(names_->fields_, fields_, name) : nullptr;
  return value != nullptr ? std::string_view(value->text) : std::string_view{};
}

JsonFault BodyValues::fault_of_json(std::string_view pointer) const noexcept {
  if (fault_ != JsonFault::None || names_ == nullptr) return fault_;
  const auto* value = find(names_->pointers_, json_, pointer);
  return value != nullptr && value->repeated ? JsonFault::Repeated : JsonFault::None;
}

JsonFault BodyValues::fault_of_field(std::string_view name) const noexcept {
  const auto* value = names_ != nullptr ? find(names_->fields_, fields_, name) : nullptr;
  return value != nullptr && value->repeated ? JsonFault::Repeated : JsonFault::None;
}

}  // namespace weir::policy
