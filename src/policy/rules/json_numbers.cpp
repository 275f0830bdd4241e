#include "policy/rules/json_numbers.hpp"

#include "policy/rules/decimal.hpp"

#include <algorithm>
#include <cassert>
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
constexpr std::size_t kMostText = 4 << 10;  // the longest key, string or number that is kept

// A set of pointers. Bit N stands for the pointer number N.
using Pointers = std::uint32_t;
static_assert(kMostPointers == std::numeric_limits<Pointers>::digits);

// Returns the member name that a part of a JSON pointer encodes. "~1" stands for '/', "~0" for '~' (RFC 6901
// §4).
std::string token_of(std::string_view piece) {
  std::string token;
  for (; !piece.empty(); piece.remove_prefix(1)) {
    const bool coded = piece.starts_with("~0") || piece.starts_with("~1");
    if (coded) piece.remove_prefix(1);
    token += !coded ? piece.front() : piece.front() == '0' ? '~' : '/';
  }
  return token;
}

}  // namespace

std::vector<std::string> names_in_pointer(std::string_view pointer) {
  std::vector<std::string> names;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const auto end = std::min(pointer.find('/'), pointer.size());
    names.push_back(token_of(pointer.substr(0, end)));
    pointer.remove_prefix(end);
  }
  return names;
}

// The handler for the events of the JSON parser. It follows the pointers through the document.
class JsonWalk {
 public:
  static constexpr std::size_t max_array_size = kAny;
  static constexpr std::size_t max_object_size = kAny;
  static constexpr std::size_t max_string_size = kAny;
  static constexpr std::size_t max_key_size = kAny;

  explicit JsonWalk(std::span<const std::string> pointers) : numbers_(pointers.size()) {
    assert(pointers.size() <= kMostPointers);
    for (const auto& pointer : pointers) paths_.push_back(names_in_pointer(pointer));
  }

  [[nodiscard]] std::vector<JsonNumber> numbers() const {
    auto numbers = numbers_;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if ((doubled_ >> i & 1U) != 0)
        numbers[i] = {.found = JsonNumber::Found::Faulty, .fault = JsonFault::Repeated};
    return numbers;
  }
  // Returns the allocated memory in bytes. Includes an estimate of the parser's stack, which has an entry for
  // each entry of `open_`.
  [[nodiscard]] std::size_t memory() const noexcept {
    constexpr std::size_t kOnStack = 32;  // at most this many bytes for each entry of the stack
    std::size_t of_paths = 0;
    for (const auto& path : paths_) of_paths += sizeof path + path.size() * sizeof(std::string);
    return of_paths + open_.capacity() * (sizeof(Open) + kOnStack) + heard_.capacity() + memory_of(numbers_);
  }
  void restart() {
    open_.clear();
    heard_.clear();
    named_ = doubled_ = 0;
    overlong_ = false;
    std::fill(numbers_.begin(), numbers_.end(), JsonNumber{});
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
    named_ = overlong_ ? 0 : those_named(object.on_way, heard_);
    doubled_ |= named_ & object.met;
    object.met |= named_;
    return forget();
  }
  bool on_string_part(Text text, std::size_t, Fault&) { return hear(text); }
  bool on_string(Text text, std::size_t, Fault&) { return hear(text) && meet_number(); }
  bool on_number_part(Text text, Fault&) { return hear(text); }
  bool on_int64(std::int64_t, Text text, Fault&) { return hear(text) && meet_number(); }
  bool on_uint64(std::uint64_t, Text text, Fault&) { return hear(text) && meet_number(); }
  bool on_double(double, Text text, Fault&) { return hear(text) && meet_number(); }
  bool on_bool(bool, Fault&) { return meet(JsonNumber::Found::Faulty); }
  bool on_null(Fault&) { return meet(JsonNumber::Found::Null); }
  bool on_comment_part(Text, Fault&) { return true; }
  bool on_comment(Text, Fault&) { return true; }

 private:
  // An object or array that the parser has begun and not yet finished.
  struct Open {
    bool array;
    Pointers on_way;        // the pointers that lead to or into this object or array
    Pointers met = 0;       // for an object: the pointers whose next member the parser has found
    std::size_t count = 0;  // for an array: the number of elements so far
  };

  bool hear(Text text) {
    const auto room = kMostText - heard_.size();
    overlong_ = overlong_ || text.size() > room;
    heard_.append(text.data(), std::min(text.size(), room));
    return true;
  }
  bool forget() {
    heard_.clear();
    overlong_ = false;
    return true;
  }
  // Calls visit(N) for each pointer in the set.
  template <class Visit>
  static void for_each(Pointers pointers, Visit visit) {
    for (std::size_t i = 0; pointers != 0; ++i, pointers >>= 1U)
      if ((pointers & 1U) != 0) visit(i);
  }
  // Returns those of the pointers whose next name, inside the innermost open object or array, is `name`.
  [[nodiscard]] Pointers those_named(Pointers pointers, std::string_view name) const {
    Pointers named = 0;
    for_each(pointers, [&](std::size_t i) {
      const auto& path = paths_[i];
      if (open_.size() <= path.size() && path[open_.size() - 1] == name) named |= Pointers{1} << i;
    });
    return named;
  }
  // Returns the pointers that lead to or into the value that begins here.
  Pointers step() {
    if (open_.empty()) return static_cast<Pointers>((std::uint64_t{1} << paths_.size()) - 1);
    auto& around = open_.back();
    if (!around.array) return named_;
    const auto index = around.count++;
    return around.on_way != 0 ? those_named(around.on_way, std::to_string(index)) : 0;
  }
  // Stores `number` as the result of those pointers in the set that end at this value.
  void store(Pointers pointers, const JsonNumber& number) {
    for_each(pointers, [&](std::size_t i) {
      if (paths_[i].size() == open_.size()) numbers_[i] = number;
    });
  }
  bool open(bool array) {
    const auto on_way = step();
    store(on_way, {.found = JsonNumber::Found::Faulty});
    open_.push_back({array, on_way});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }
  // Handles a number, or a string that may contain a number in JSON syntax.
  bool meet_number() {
    if (const auto pointers = step(); pointers != 0) {
      auto digits = overlong_ ? std::nullopt : plain_digits(heard_);
      store(pointers, {.found = digits ? JsonNumber::Found::Number : JsonNumber::Found::Faulty,
                       .digits = std::move(digits).value_or("")});
    }
    return forget();
  }
  bool meet(JsonNumber::Found found) {
    store(step(), {.found = found});
    return true;
  }

  std::vector<std::vector<std::string>> paths_;  // for each pointer: its names, in order
  std::vector<Open> open_;
  std::string heard_;      // the text of the current key, string or number; it may arrive in pieces
  bool overlong_ = false;  // the text is longer than heard_ may be
  Pointers named_ = 0;     // the pointers that name the last key that the parser has read
  Pointers doubled_ = 0;   // the pointers that name a member that has occurred twice
  std::vector<JsonNumber> numbers_;
};

namespace {

json::parse_options bounded_depth() {
  json::parse_options options;
  options.max_depth = kDeepestJson;
  return options;
}

JsonFault fault_of(const Fault& fault) noexcept {
  if (fault == json::error::too_deep) return JsonFault::TooDeep;
  if (fault == json::error::incomplete) return JsonFault::Incomplete;
  return fault ? JsonFault::Malformed : JsonFault::None;
}

}  // namespace

class JsonNumberReader::Impl {
 public:
  explicit Impl(std::span<const std::string> pointers) : parser_(bounded_depth(), pointers) {}

  void read(std::string_view piece, bool more) {
    if (fault_ != JsonFault::None) return;
    Fault fault;
    const auto used = parser_.write_some(more, piece.data(), piece.size(), fault);
    fault_ = fault_of(fault);
    if (fault_ == JsonFault::None && used != piece.size()) fault_ = JsonFault::Trailing;
  }
  JsonNumbers finish() {
    read("", false);
    JsonNumbers result{.fault = fault_};
    if (fault_ == JsonFault::None) result.numbers = parser_.handler().numbers();
    parser_.reset();
    parser_.handler().restart();
    fault_ = JsonFault::None;
    return result;
  }
  [[nodiscard]] std::size_t memory() const noexcept { return sizeof *this + parser_.handler().memory(); }

 private:
  json::basic_parser<JsonWalk> parser_;
  JsonFault fault_ = JsonFault::None;
};

JsonNumberReader::JsonNumberReader(std::span<const std::string> pointers)
    : impl_(std::make_unique<Impl>(pointers)) {}
JsonNumberReader::JsonNumberReader(JsonNumberReader&&) noexcept = default;
JsonNumberReader& JsonNumberReader::operator=(JsonNumberReader&&) noexcept = default;
JsonNumberReader::~JsonNumberReader() = default;

void JsonNumberReader::read(std::string_view piece) {
  if (!piece.empty()) impl_->read(piece, true);
}

JsonNumbers JsonNumberReader::finish() {
  return impl_->finish();
}

std::size_t JsonNumberReader::memory() const noexcept {
  return impl_->memory();
}

std::size_t memory_of(std::span<const JsonNumber> numbers) noexcept {
  std::size_t bytes = numbers.size_bytes();
  for (const auto& number : numbers) bytes += number.digits.capacity();
  return bytes;
}

JsonNumbers find_json_numbers(std::string_view document, std::span<const std::string> pointers) {
  if (document.starts_with("\xef\xbb\xbf")) return {.fault = JsonFault::ByteOrderMark};
  JsonNumberReader reader(pointers);
  reader.read(document);
  return reader.finish();
}

JsonNumber find_json_number(std::string_view document, std::string_view pointer) {
  const std::string pointers[] = {std::string(pointer)};
  auto found = find_json_numbers(document, pointers);
  if (found.fault != JsonFault::None) return {.found = JsonNumber::Found::Faulty, .fault = found.fault};
  return std::move(found.numbers.front());
}

}  // namespace weir::policy
