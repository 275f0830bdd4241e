#include "policy/body/json_reader.hpp"

#include "policy/body/fold_case.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <boost/json/basic_parser_impl.hpp>

namespace weir::policy {

namespace {

namespace json = boost::json;
using Text = json::string_view;
using Fault = json::error_code;

// Returns the member name that a part of a JSON pointer encodes. "~1" stands for '/', "~0" for '~' (RFC 6901
// §4).
std::string name_of_token(std::string_view token) {
  std::string name;
  for (; !token.empty(); token.remove_prefix(1)) {
    const bool coded = token.starts_with("~0") || token.starts_with("~1");
    if (coded) token.remove_prefix(1);
    name += !coded ? token.front() : token.front() == '0' ? '~' : '/';
  }
  return name;
}

}  // namespace

std::size_t JsonPointers::add(std::string_view pointer) {
  const auto known = numbers_.find(pointer);
  if (known != numbers_.end()) return known->second;
  std::size_t at = 0;
  for (auto rest = pointer; !rest.empty();) {
    rest.remove_prefix(1);
    const auto end = std::min(rest.find('/'), rest.size());
    auto name = name_of_token(rest.substr(0, end));
    if (names_ == JsonNames::AnyCase) fold_case(name);
    rest.remove_prefix(end);
    const auto [next, added] = nodes_[at].below.emplace(std::move(name), static_cast<int>(nodes_.size()));
    at = static_cast<std::size_t>(next->second);
    if (added) nodes_.emplace_back();
  }
  auto& value = nodes_[at].value;
  if (value == kNone) value = static_cast<int>(size_++);
  numbers_.emplace(pointer, static_cast<std::size_t>(value));
  return static_cast<std::size_t>(value);
}

std::optional<std::size_t> JsonPointers::find(std::string_view pointer) const {
  const auto found = numbers_.find(pointer);
  return found != numbers_.end() ? std::optional(found->second) : std::nullopt;
}

// The handler for the events of the JSON parser. It follows all pointers through the document.
class JsonWalk {
 public:
  static constexpr auto max_array_size = std::numeric_limits<std::size_t>::max();
  static constexpr auto max_object_size = max_array_size;
  static constexpr auto max_string_size = max_array_size;
  static constexpr auto max_key_size = max_array_size;

  explicit JsonWalk(const JsonPointers& pointers)
      : pointers_(pointers), values_(pointers.size()), occurrences_(pointers.nodes_.size()) {}

  void take_values(std::vector<JsonValue>& values) { values_.swap(values); }
  void restart() {
    open_.clear();
    member_ = JsonPointers::kNone;
    values_.assign(pointers_.size(), {});
    std::fill(occurrences_.begin(), occurrences_.end(), Occurrences::None);
    forget_text();
  }
  // Returns the size of the allocated memory in bytes, including the parser's stack, which is as deep as
  // `open_`.
  [[nodiscard]] std::size_t memory() const noexcept {
    constexpr std::size_t kOnStack = 32;  // maximum size of the parser's stack for each open object or array
    std::size_t bytes = open_.capacity() * (sizeof(Open) + kOnStack) + text_.capacity() +
                        occurrences_.capacity() + values_.capacity() * sizeof(JsonValue);
    for (const auto& value : values_) bytes += value.text.capacity();
    return bytes;
  }

  bool on_document_begin(Fault&) { return true; }
  bool on_document_end(Fault&) { return true; }
  bool on_object_begin(Fault&) { return open(false); }
  bool on_array_begin(Fault&) { return open(true); }
  bool on_object_end(std::size_t, Fault&) { return close(); }
  bool on_array_end(std::size_t, Fault&) { return close(); }
  bool on_key_part(Text text, std::size_t, Fault&) { return append(text); }
  bool on_key(Text text, std::size_t, Fault&) {
    (void)append(text);
    const auto around = open_.back().node;
    member_ = around == JsonPointers::kNone || text_is_cut_ ? JsonPointers::kNone : node_below(around, text_);
    if (member_ != JsonPointers::kNone) note_occurrence(static_cast<std::size_t>(member_));
    return forget_text();
  }
  bool on_string_part(Text text, std::size_t, Fault&) { return append(text); }
  bool on_string(Text text, std::size_t, Fault&) { return append(text) && store(JsonValue::Kind::Text); }
  bool on_number_part(Text text, Fault&) { return append(text); }
  bool on_int64(std::int64_t, Text text, Fault&) { return append(text) && store(JsonValue::Kind::Number); }
  bool on_uint64(std::uint64_t, Text text, Fault&) { return append(text) && store(JsonValue::Kind::Number); }
  bool on_double(double, Text text, Fault&) { return append(text) && store(JsonValue::Kind::Number); }
  bool on_bool(bool value, Fault&) {
    return append(value ? "true" : "false") && store(JsonValue::Kind::Boolean);
  }
  bool on_null(Fault&) { return store(JsonValue::Kind::Null); }
  bool on_comment_part(Text, Fault&) { return true; }
  bool on_comment(Text, Fault&) { return true; }

 private:
  // An object or array that the parser has begun and not yet finished.
  struct Open {
    bool array;
    int node;               // kNone: no pointer leads into this object or array
    std::size_t count = 0;  // array: number of elements so far
  };
  enum class Occurrences : std::uint8_t { None, One, Several };

  // Appends a piece of a name or value to `text_`, unless no pointer leads into the current object or array.
  bool append(Text text) {
    if (!open_.empty() && open_.back().node == JsonPointers::kNone) return true;
    const auto room = kLongestBodyValue - text_.size();
    text_is_cut_ = text_is_cut_ || text.size() > room;
    text_.append(text.data(), std::min(text.size(), room));
    return true;
  }
  bool forget_text() noexcept {
    text_.clear();
    text_is_cut_ = false;
    return true;
  }
  [[nodiscard]] int node_below(int node, std::string& name) const {
    if (pointers_.names_ == JsonNames::AnyCase) fold_case(name);
    const auto& below = pointers_.nodes_[static_cast<std::size_t>(node)].below;
    const auto found = below.find(name);
    return found != below.end() ? found->second : JsonPointers::kNone;
  }
  // Returns the node of the value that the parser has reached; kNone if no pointer leads to the value. Must
  // be called once for each value, because the call counts the elements of an array.
  int next_node() {
    if (open_.empty()) return 0;
    auto& around = open_.back();
    if (!around.array) return member_;
    const auto index = around.count++;
    if (around.node == JsonPointers::kNone) return JsonPointers::kNone;
    auto name = std::to_string(index);
    return node_below(around.node, name);
  }
  // Returns the value of the pointer that ends at this node; null if no pointer ends there.
  JsonValue* value_of(int node) {
    if (node == JsonPointers::kNone) return nullptr;
    const auto value = pointers_.nodes_[static_cast<std::size_t>(node)].value;
    return value != JsonPointers::kNone ? &values_[static_cast<std::size_t>(value)] : nullptr;
  }
  bool open(bool array) {
    const auto node = next_node();
    if (auto* value = value_of(node)) value->kind = JsonValue::Kind::Structured;
    open_.push_back({array, node});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  bool store(JsonValue::Kind kind) {
    if (auto* value = value_of(next_node())) {
      value->kind = kind;
      value->text = text_;
      value->is_cut = text_is_cut_;
    }
    return forget_text();
  }
  // Counts an occurrence of the member at `node`. At the second one, marks the member's value and the values
  // inside it as repeated. Later occurrences cost no more time.
  void note_occurrence(std::size_t node) {
    auto& occurrences = occurrences_[node];
    if (occurrences == Occurrences::One) mark_repeated(node);
    occurrences = occurrences == Occurrences::None ? Occurrences::One : Occurrences::Several;
  }
  void mark_repeated(std::size_t node) {
    if (auto* value = value_of(static_cast<int>(node))) value->repeated = true;
    for (const auto& [name, below] : pointers_.nodes_[node].below)
      mark_repeated(static_cast<std::size_t>(below));
  }

  const JsonPointers& pointers_;
  std::vector<JsonValue> values_;
  std::vector<Occurrences> occurrences_;  // for each node: how often the document has the member
  std::vector<Open> open_;
  std::string text_;                  // the beginning of the current name or value, which may come in pieces
  bool text_is_cut_ = false;          // the name or value is longer than `text_` may be
  int member_ = JsonPointers::kNone;  // the node of the last member whose name the parser has read
};

namespace {

json::parse_options options_for_bodies() {
  json::parse_options options;
  options.max_depth = kDeepestJson;
  return options;
}

JsonFault fault_of_parser(const Fault& fault) noexcept {
  if (fault == json::error::too_deep) return JsonFault::TooDeep;
  if (fault == json::error::incomplete) return JsonFault::Incomplete;
  return fault ? JsonFault::Malformed : JsonFault::None;
}

}  // namespace

class JsonReader::Impl {
 public:
  explicit Impl(const JsonPointers& pointers) : parser_(options_for_bodies(), pointers) {}

  void read(std::string_view piece, bool more) {
    if (fault_ != JsonFault::None) return;
    Fault fault;
    const auto used = parser_.write_some(more, piece.data(), piece.size(), fault);
    fault_ = fault_of_parser(fault);
    if (fault_ == JsonFault::None && used != piece.size()) fault_ = JsonFault::Trailing;
  }
  JsonFault finish(std::vector<JsonValue>& values) {
    read("", false);
    parser_.handler().take_values(values);
    parser_.reset();
    parser_.handler().restart();
    return std::exchange(fault_, JsonFault::None);
  }
  [[nodiscard]] std::size_t memory() const noexcept { return sizeof *this + parser_.handler().memory(); }

 private:
  json::basic_parser<JsonWalk> parser_;
  JsonFault fault_ = JsonFault::None;
};

JsonReader::JsonReader(const JsonPointers& pointers) : impl_(std::make_unique<Impl>(pointers)) {}
JsonReader::~JsonReader() = default;

void JsonReader::read(std::string_view piece) {
  if (!piece.empty()) impl_->read(piece, true);
}

JsonFault JsonReader::finish(std::vector<JsonValue>& values) {
  return impl_->finish(values);
}

std::size_t JsonReader::memory() const noexcept {
  return impl_->memory();
}

}  // namespace weir::policy
