#include "policy/rules/json_number.hpp"

#include "policy/rules/decimal.hpp"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <boost/json/basic_parser_impl.hpp>

namespace weir::policy {

namespace {

namespace json = boost::json;
using Text = json::string_view;
using Fault = json::error_code;

constexpr auto kAny = std::numeric_limits<std::size_t>::max();

JsonNumber faulty(JsonFault fault) {
  return {.found = JsonNumber::Found::Faulty, .fault = fault};
}

// Returns the name that a piece of the pointer encodes: "~1" is '/', "~0" is '~' (RFC 6901 §4).
std::string token_of(std::string_view piece) {
  std::string token;
  for (; !piece.empty(); piece.remove_prefix(1)) {
    const bool coded = piece.starts_with("~0") || piece.starts_with("~1");
    if (coded) piece.remove_prefix(1);
    token += !coded ? piece.front() : piece.front() == '0' ? '~' : '/';
  }
  return token;
}

std::vector<std::string> tokens_of(std::string_view pointer) {
  std::vector<std::string> tokens;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    tokens.push_back(token_of(pointer.substr(0, end)));
    pointer.remove_prefix(end);
  }
  return tokens;
}

// The handler for the events of the JSON parser. It follows the pointer through the document.
class Walk {
 public:
  static constexpr std::size_t max_array_size = kAny;
  static constexpr std::size_t max_object_size = kAny;
  static constexpr std::size_t max_string_size = kAny;
  static constexpr std::size_t max_key_size = kAny;

  explicit Walk(std::string_view pointer) : tokens_(tokens_of(pointer)) {}

  [[nodiscard]] JsonNumber result() const {
    if (doubled_) return faulty(JsonFault::Repeated);
    return {.found = found_, .digits = digits_};
  }

  bool on_document_begin(Fault&) { return true; }
  bool on_document_end(Fault&) { return true; }
  bool on_object_begin(Fault&) { return open(false); }
  bool on_array_begin(Fault&) { return open(true); }
  bool on_object_end(std::size_t, Fault&) { return close(); }
  bool on_array_end(std::size_t, Fault&) { return close(); }
  bool on_key_part(Text text, std::size_t, Fault&) { return hear(text); }
  bool on_key(Text text, std::size_t, Fault&) {
    (void)hear(text);
    auto& object = open_.back();
    named_ = object.on_way && open_.size() <= tokens_.size() && heard_ == tokens_[open_.size() - 1];
    doubled_ = doubled_ || (named_ && object.met);
    object.met = object.met || named_;
    heard_.clear();
    return true;
  }
  bool on_string_part(Text text, std::size_t, Fault&) { return hear(text); }
  bool on_string(Text text, std::size_t, Fault&) { return hear(text) && meet_number(); }
  bool on_number_part(Text text, Fault&) { return hear(text); }
  bool on_int64(std::int64_t, Text text, Fault&) { return hear(text) && meet_number(); }
  bool on_uint64(std::uint64_t, Text text, Fault&) { return hear(text) && meet_number(); }
  bool on_double(double, Text text, Fault&) { return hear(text) && meet_number(); }
  bool on_bool(bool, Fault&) { return meet_other(); }
  bool on_null(Fault&) { return meet_other(); }
  bool on_comment_part(Text, Fault&) { return true; }
  bool on_comment(Text, Fault&) { return true; }

 private:
  // An object or array that the parser has begun and not yet finished.
  struct Open {
    bool array;
    bool on_way;            // true: the pointer leads into this object or array
    bool met = false;       // object: the parser has found the member that the pointer names
    std::size_t count = 0;  // array: number of elements so far
  };

  bool hear(Text text) {
    heard_.append(text.data(), text.size());
    return true;
  }
  // Returns true if the pointer leads to or into the value that begins here.
  bool step() {
    if (open_.empty()) return true;
    auto& around = open_.back();
    if (!around.array) return named_;
    const auto index = around.count++;
    return around.on_way && open_.size() <= tokens_.size() &&
           tokens_[open_.size() - 1] == std::to_string(index);
  }
  [[nodiscard]] bool at_end() const noexcept { return open_.size() == tokens_.size(); }
  bool open(bool array) {
    const bool on_way = step();
    if (on_way && at_end()) found_ = JsonNumber::Found::Faulty;
    open_.push_back({array, on_way});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  // Handles a number, or a string. A string may contain a number in JSON syntax.
  bool meet_number() {
    if (step() && at_end()) {
      auto digits = plain_digits(heard_);
      found_ = digits ? JsonNumber::Found::Number : JsonNumber::Found::Faulty;
      digits_ = std::move(digits).value_or("");
    }
    heard_.clear();
    return true;
  }
  bool meet_other() {
    if (step() && at_end()) found_ = JsonNumber::Found::Faulty;
    return true;
  }

  std::vector<std::string> tokens_;
  std::vector<Open> open_;
  std::string heard_;     // the text of the current key, string or number; it may arrive in pieces
  bool named_ = false;    // true: the pointer names the last key that the parser has read
  bool doubled_ = false;  // true: a member that the pointer names has occurred twice
  JsonNumber::Found found_ = JsonNumber::Found::Nothing;
  std::string digits_;
};

}  // namespace

JsonNumber find_json_number(std::string_view document, std::string_view pointer) {
  json::parse_options options;
  options.max_depth = kDeepestJson;
  json::basic_parser<Walk> parser(options, pointer);
  Fault fault;
  if (document.starts_with("\xef\xbb\xbf")) return faulty(JsonFault::ByteOrderMark);
  const auto used = parser.write_some(false, document.data(), document.size(), fault);
  if (fault == json::error::too_deep) return faulty(JsonFault::TooDeep);
  if (fault == json::error::incomplete) return faulty(JsonFault::Incomplete);
  if (fault) return faulty(JsonFault::Malformed);
  if (used != document.size()) return faulty(JsonFault::Trailing);
  return parser.handler().result();
}

}  // namespace weir::policy
