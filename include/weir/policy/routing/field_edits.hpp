// Changes of header fields that a route makes to the requests that weir forwards, and to their answers. Pure.
//
// Names are compared as http::FieldNames compares them. So a client cannot evade `set` or `remove` by another
// spelling of a name, such as X_User.
#pragma once

#include "weir/http/field_names.hpp"
#include "weir/http/head.hpp"
#include "weir/policy/routing/text_template.hpp"

#include <string>
#include <vector>

namespace weir::policy {

// A header field that weir writes into a request or an answer. weir leaves the field out if its value is
// empty.
struct EditedField {
  std::string name;
  TextTemplate value;
  bool replaces = false;  // true: `set`, which drops fields of the same name; false: `add`
  // True: the field describes the body of a server's answer, or its caching. weir does not add the field to
  // answers that it creates itself.
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
  bool uses_token = false;  // true: the value of a field may come from the client's token
};

// Marks those of `fields` that `edits` drops, so that weir does not forward them.
void drop_fields(const FieldEdits& edits, http::Fields& fields) noexcept;
// Appends the lines of the written fields, each with its CRLF.
void append_lines(const FieldEdits& edits, const TemplateValues& values, std::string& lines);
// Changes the lines of an answer that weir creates itself: appends the written fields, and removes the lines
// that they replace. Leaves out fields that describe a body. Ignores `remove`, because weir itself writes no
// field that a route may remove.
void edit_own_lines(const FieldEdits& edits, const TemplateValues& values, std::string& lines);

}  // namespace weir::policy
