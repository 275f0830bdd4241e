// Reads the values of a request's body that keys and conditions name: members of JSON, and fields of a form.
//
// One pass over the body finds all members, and one pass finds all fields, however many rules ask for them.
// The server may read the body in another way than weir, so weir reports a fault wherever servers differ
// (docs/design/reading-requests.md). Pure; the caller has the whole body in memory.
#pragma once

#include "weir/http/head.hpp"
#include "weir/policy/cost.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::policy {

// weir reads this many octets of a value and ignores the rest. So the memory for values is bounded.
inline constexpr std::size_t kLongestBodyValue = 4096;

// Why weir cannot read a value in a request's body.
enum class BodyFault : std::uint8_t {
  None,
  ContentType,    // the Content-Type is not one media type: a list, two lines that differ, or only some
                  // servers take it for that of a form
  Charset,        // the Content-Type names another charset than UTF-8
  NotJson,        // the body is not JSON, and a JsonFault says why
  NeitherKind,    // the body is not JSON, and its Content-Type is not that of a form
  Multipart,      // the body is a multipart form, whose fields weir does not read
  TooManyFields,  // the form has more fields than max_parameters
  Repeated,       // the field, the member, or an object that contains the member occurs twice
  Respelled,      // the form has a name or a value that only some servers read as the field's
  Structured,     // the member is an object or an array
  LongNumber,     // the member is a number of more than kLongestBodyValue octets
  TwoValues,      // two attributes of one part of a key have a value
};

// How names of JSON members are compared. AnyCase ignores the case of letters: see fold_case().
enum class JsonNames : std::uint8_t { Exact, AnyCase };

// JSON pointers (RFC 6901) in a tree, so that one pass over a document follows all of them.
class JsonPointers {
 public:
  explicit JsonPointers(JsonNames names) : names_(names) {}
  // Adds a pointer. Returns the number of its value. Pointers to the same place have the same number.
  std::size_t add(std::string_view pointer);
  // Returns the number of the pointer's value; nullopt if the pointer was not added.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view pointer) const;
  // Returns how many values the pointers have.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  friend class JsonWalk;
  static constexpr int kNone = -1;

  // A place in a document on the way to a value: a member of an object, or an element of an array.
  struct Node {
    std::map<std::string, int, std::less<>> below{};  // the name or index, and the node there
    int value = kNone;                                // the number of the value; kNone: only on the way
  };

  JsonNames names_;
  std::size_t size_ = 0;
  std::map<std::string, std::size_t, std::less<>> numbers_;  // the number of each pointer's value
  std::vector<Node> nodes_{1};                               // the first node is the whole document
};

// The value under a JSON pointer.
struct JsonValue {
  enum class Kind : std::uint8_t { Nothing, Null, Text, Number, Boolean, Structured };
  Kind kind = Kind::Nothing;
  bool repeated = false;  // the member, or an object that contains it, occurs twice
  bool is_cut = false;    // `text` is only the beginning of the value
  std::string text{};     // as in the document, without escapes; at most kLongestBodyValue octets
};

// The names of form fields, sorted, so that one pass over a form finds all of them.
class FormNames {
 public:
  void add(std::string_view name);
  // Returns the number of the field's value; nullopt if the name was not added.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  // Returns how many values the names have. Names that differ only in case have the same value.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  friend class FormNameSearch;
  struct Entry {
    std::string pattern;  // the name in the form in which servers may confuse names: see form_fields.cpp
    std::string name;     // the name without capitals
    std::size_t value;    // the number of the value
  };

  // A name with brackets. The key of the map is the name in the form in which Rack may confuse such names.
  struct Bracketed {
    std::string name;   // the name without capitals
    std::size_t value;  // the number of the value
  };
  using BracketedNames = std::multimap<std::string, Bracketed, std::less<>>;

  std::vector<Entry> entries_;  // sorted by `pattern`
  BracketedNames bracketed_;
  std::map<std::string, std::size_t, std::less<>> numbers_;  // the number of each name's value
};

// The value of a form field. The fault is None, Repeated or Respelled.
struct FormValue {
  bool found = false;
  BodyFault fault = BodyFault::None;
  std::string text{};  // decoded, at most kLongestBodyValue octets
};

// The values to look for. Immutable after the configuration was read.
class BodyNames {
 public:
  // Adds a JSON pointer (RFC 6901), or the name of a form field. Adding a name again changes nothing.
  void add_pointer(std::string_view pointer) { (void)pointers_.add(pointer); }
  void add_field(std::string_view name) { fields_.add(name); }

 private:
  friend class BodyValues;
  JsonPointers pointers_{JsonNames::AnyCase};
  FormNames fields_;
};

// The values that one body has. Belongs to one exchange.
class BodyValues {
 public:
  // Finds the values. `names` must outlive this object's next read(). An empty body has no values and no
  // faults. JSON is read whatever the Content-Type is. A form (urlencoded or multipart) that is not JSON has
  // no members, if it begins like a form. Fields are read unless the Content-Type is one of JSON.
  void read(const BodyNames& names, const http::RequestHead& head, std::string_view body);
  // Forgets the values and frees their memory.
  void clear() noexcept;

  // Returns the value: a string, a number in its one spelling ("5" for 5.0 and 5e0), "true" or "false". Empty
  // if the body has no such value, or an object, an array or null instead.
  [[nodiscard]] std::string_view json(std::string_view pointer) const;
  // Returns the decoded value of a form field, with '+' as a blank; empty if the body has none.
  [[nodiscard]] std::string_view field(std::string_view name) const;
  // Return why the value cannot be read; None if it can be read.
  [[nodiscard]] BodyFault fault_of_json(std::string_view pointer) const;
  [[nodiscard]] BodyFault fault_of_field(std::string_view name) const;
  // Returns why the body is not JSON. None unless fault_of_json() is NotJson.
  [[nodiscard]] JsonFault json_fault() const noexcept { return json_fault_; }

 private:
  enum class BodyType : std::uint8_t { Json, Form, Multipart, Other };
  struct ContentType {
    BodyType type = BodyType::Other;
    BodyFault fault = BodyFault::None;
  };
  static ContentType content_type_of(const http::Fields& fields);
  void read_json(BodyType type, std::string_view body);
  void read_form(BodyType type, std::string_view body, std::size_t most);
  [[nodiscard]] const JsonValue* json_value(std::string_view pointer) const;
  [[nodiscard]] const FormValue* form_value(std::string_view name) const;

  const BodyNames* names_ = nullptr;
  std::vector<JsonValue> json_;            // by number; empty if the body is not JSON
  std::vector<FormValue> fields_;          // by number; empty if the body is not read as a form
  BodyFault of_json_ = BodyFault::None;    // why weir can read no member
  BodyFault of_fields_ = BodyFault::None;  // why weir can read no field
  JsonFault json_fault_ = JsonFault::None;
};

}  // namespace weir::policy
