// Reads the values of a request's body that keys and conditions name: members of JSON, and fields of a form.
//
// One pass over the body finds all values, however many rules ask for them. Pure; the caller has the whole
// body in memory.
#pragma once

#include "weir/http/head.hpp"
#include "weir/policy/cost.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::policy {

// weir reads this many octets of a value and ignores the rest. So the memory for values is bounded.
inline constexpr std::size_t kLongestBodyValue = 4096;

// The values to look for. Immutable after the configuration was read.
class BodyNames {
 public:
  // Adds a JSON pointer (RFC 6901), or the name of a form field. Adding a name again changes nothing.
  void add_pointer(std::string_view pointer);
  void add_field(std::string_view name);
  [[nodiscard]] bool empty() const noexcept { return pointers_.empty() && fields_.empty(); }

 private:
  friend class BodyValues;
  friend class BodyJsonWalk;
  static constexpr int kNone = -1;

  // A place in a document on the way to a value: a member of an object, or an element of an array.
  struct Node {
    std::vector<std::pair<std::string, int>> children{};  // the name or index, and the node there
    int value = kNone;                                    // position in pointers_; kNone: only on the way
  };
  [[nodiscard]] int child(int node, std::string_view name) const noexcept;

  std::vector<std::string> pointers_;
  std::vector<std::string> fields_;
  std::vector<Node> nodes_{1};  // the first node is the whole document
};

// The values that one body has. Belongs to one exchange.
class BodyValues {
 public:
  // Finds the values. `names` must outlive this object's next read(). A body without JSON values has none: an
  // empty body, and a form (urlencoded or multipart) that is not JSON. Form fields are read only if a
  // Content-Type is application/x-www-form-urlencoded.
  void read(const BodyNames& names, const http::Fields& fields, std::string_view body);
  // Forgets the values and frees their memory.
  void clear() noexcept;

  // Returns the value: a string, a number in its one spelling ("5" for 5.0 and 5e0), "true" or "false". Empty
  // if the body has no such value, or an object, an array or null instead.
  [[nodiscard]] std::string_view json(std::string_view pointer) const noexcept;
  // Returns the decoded value of a form field, with '+' as a blank; empty if the body has none.
  [[nodiscard]] std::string_view field(std::string_view name) const noexcept;
  // Return why the value cannot be read; None if it can be read. The fault is Repeated if the field, the
  // member, or an object that contains the member occurs twice.
  [[nodiscard]] JsonFault fault_of_json(std::string_view pointer) const noexcept;
  [[nodiscard]] JsonFault fault_of_field(std::string_view name) const noexcept;

 private:
  friend class BodyJsonWalk;
  struct Value {
    std::string text{};
    bool repeated = false;
  };
  static const Value* find(const std::vector<std::string>& names, const std::vector<Value>& values,
                           std::string_view name) noexcept;
  void read_json(const http::Fields& fields, std::string_view body);
  void read_form(std::string_view body);

  const BodyNames* names_ = nullptr;
  std::vector<Value> json_;    // like BodyNames::pointers_; empty if the body is not JSON
  std::vector<Value> fields_;  // like BodyNames::fields_; empty if the body is no form
  JsonFault fault_ = JsonFault::None;
};

}  // namespace weir::policy
