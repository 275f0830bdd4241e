// Changes of header fields that a route makes to the requests that weir forwards, and to their answers. Pure.
//
// Names are compared as FieldNames does, so that a client cannot hide a field from `set` or `remove` behind
// another spelling such as X_User.
#pragma once

#include "weir/http/field_names.hpp"
#include "weir/http/head.hpp"
#include "weir/policy/routing/text_template.hpp"

#include <string>
#include <vector>

namespace weir::policy {

// A field that weir writes. If the value is empty, weir writes no line.
struct EditedField {
  std::string name;
  TextTemplate value;
  bool replaces = false;  // true: `set`, which drops fields of the same name; false: `add`
  // True: the field describes the body of a server or its caching. So answers that weir creates itself do not
  // get it.
  bool describes_body = false;
};

struct FieldEdits {
  // Adds a field that weir writes.
  void add(EditedField field);
  // Adds a name, or a prefix such as "X-Debug-*", of fields that weir does not forward.
  void remove(std::string name);
  [[nodiscard]] bool empty() const noexcept { return dropped.empty() && written.empty(); }

  http::FieldNames dropped;          // fields that weir does not forward: those of `set` and of `remove`
  std::vector<std::string> removed;  // the names and prefixes in `remove`
  std::vector<EditedField> written;
  bool asks_who = false;  // true: a value may come from the client's token
};

// Marks the dropped fields, so that weir does not forward them.
void drop_fields(const FieldEdits& edits, http::Fields& fields) noexcept;
// Appends the lines of the written fields, each with its CRLF.
void append_lines(const FieldEdits& edits, const TemplateValues& values, std::string& lines);
// Changes the lines of an answer that weir creates itself: appends the written fields, and removes the lines
// that they replace. Leaves out fields that describe a body. `remove` has no effect, because weir writes no
// field that a route may remove.
void edit_own_lines(const FieldEdits& edits, const TemplateValues& values, std::string& lines);

}  // namespace weir::policy
