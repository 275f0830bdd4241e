// Reads the values in a request's body that keys and conditions name: members of JSON, and fields of a form.
//
// One pass over the body finds all JSON members, and one pass finds all form fields, however many rules ask
// for them. The server may read the body in another way than weir, so weir reports a fault wherever servers
// differ (docs/design/reading-requests.md). Pure; the caller has the whole body in memory.
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

// weir reads this many octets of a value and ignores the rest, so that the memory for values is bounded.
inline constexpr std::size_t kLongestBodyValue = 4096;

// Why weir cannot read a value in a request's body.
enum class BodyFault : std::uint8_t {
  None,
  // the Content-Type is a list, or occurs twice with different values, or only some servers take it for a
  // form
  ContentType,
  Charset,        // the Content-Type names another charset than UTF-8
  NotJson,        // the body is not JSON, and a JsonFault says why
  NeitherKind,    // the body is not JSON, and the Content-Type does not say that it is a form
  Multipart,      // the body is a multipart form, whose fields weir does not read
  TooManyFields,  // the form has more fields than max_parameters
  Repeated,       // the field, the member, or an object that contains the member occurs twice
  Respelled,      // a name or a value is written in a way that only some servers read as this field
  Structured,     // the member is an object or an array
  LongNumber,     // the member is a number of more than kLongestBodyValue octets
  TwoValues,      // the request has values for two alternatives of one part of a key
  InQuery,        // the query has the form field, or a parameter that some servers take for the field
};

// How names of JSON members are compared. AnyCase ignores the case of letters: see fold_case().
enum class JsonNames : std::uint8_t { Exact, AnyCase };

// A set of JSON pointers (RFC 6901), as a tree, so that one pass over a document finds the values of all
// pointers.
class JsonPointers {
 public:
  explicit JsonPointers(JsonNames names) : names_(names) {}
  // Adds a pointer. Returns the index of its value, below size(). Pointers to the same member share one
  // index.
  std::size_t add(std::string_view pointer);
  // Returns the index of the pointer's value; nullopt if the pointer was not added.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view pointer) const;
  // Returns the number of different values to find.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  friend class JsonWalk;
  static constexpr int kNone = -1;

  // Stands for one place in a document that pointers lead to or through: the whole document, a member of an
  // object, or an element of an array.
  struct Node {
    // for each member name or array index in this place: the index of its node in nodes_
    std::map<std::string, int, std::less<>> below{};
    // the index of the value (see add()) of the pointer that ends here; kNone: no pointer ends here
    int value = kNone;
  };

  JsonNames names_;
  std::size_t size_ = 0;
  std::map<std::string, std::size_t, std::less<>> numbers_;  // the index of each pointer's value
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

// A set of names of form fields, sorted, so that one pass over a form finds the values of all fields.
class FormNames {
 public:
  void add(std::string_view name);
  // Returns the index of the field's value; nullopt if the name was not added.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  // Returns the number of different values to find. Names that differ only in case share one value.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  friend class FormNameSearch;
  struct Entry {
    // the name with '_' for each ' ', '.' and '[', because PHP may read these octets so
    std::string pattern;
    std::string name;   // the name in lower case
    std::size_t value;  // the index of the field's value, as find() returns it
  };

  // A field name with brackets, such as "user[name]". BracketedNames stores it under its parts with one '['
  // between them ("user[name"), because Rack (Ruby) ignores further brackets.
  struct Bracketed {
    std::string name;   // the name in lower case
    std::size_t value;  // the index of the field's value, as find() returns it
  };
  using BracketedNames = std::multimap<std::string, Bracketed, std::less<>>;

  std::vector<Entry> entries_;  // sorted by `pattern`
  BracketedNames bracketed_;
  std::map<std::string, std::size_t, std::less<>> numbers_;  // the index of each name's value
};

// The value of a form field. The fault is None, Repeated or Respelled.
struct FormValue {
  bool found = false;
  BodyFault fault = BodyFault::None;
  std::string text{};  // decoded, at most kLongestBodyValue octets
};

// The names of all values in bodies that rules read. Immutable after the configuration was read.
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

// The values of one request's body. Belongs to one exchange.
class BodyValues {
 public:
  // Finds the values of `names` in the body. Keeps a reference to `names` until the next read(). An empty
  // body has no values and no faults.
  // * Looks for JSON members whatever the Content-Type is. A body that is not JSON has a fault. Exception: if
  //   the Content-Type says that the body is a form, and the body begins like a form, the body has no members
  //   and no fault.
  // * Looks for form fields unless the Content-Type is one of JSON.
  void read(const BodyNames& names, const http::RequestHead& head, std::string_view body);
  // Forgets the values and frees their memory.
  void clear() noexcept;

  // Returns the value as text: a string, a number in one spelling for equal numbers ("5" for 5.0 and 5e0),
  // "true" or "false". Empty if the body has no such value, or if the value is an object, an array or null.
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
  // the value of each pointer, by the pointer's index; empty if the body is not JSON
  std::vector<JsonValue> json_;
  // the value of each field, by the name's index; empty if the body is not read as a form
  std::vector<FormValue> fields_;
  // why no member can be read; None: each element of json_ has its own fault
  BodyFault of_json_ = BodyFault::None;
  // why no field can be read; None: each element of fields_ has its own fault
  BodyFault of_fields_ = BodyFault::None;
  JsonFault json_fault_ = JsonFault::None;
};

}  // namespace weir::policy
