// The field "question" of the access log: the values of a question, by which rules match and count.
//
//   {"domain":"edge","cost":2,"descriptors":[{"exact":true,"cost":3,"entries":[
//     {"key":"path","value":"/login"},{"key":"user","digest":"5f0c…"}]}]}
//
// Absent values are left out. A value that the key of a rule reads may be a secret, so it appears only as a
// digest. A question that does not fit in kMostQuestion octets has "cut":true in place of its descriptors.
// Pure.
#pragma once

#include "weir/limit/rate.hpp"
#include "weir/policy/descriptor.hpp"
#include "weir/policy/naming.hpp"
#include "weir/policy/redaction.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::observe {

inline constexpr std::size_t kMostQuestion = 16 << 10;  // octets of the field's value

struct QuestionRecord {
  std::string_view domain{};
  std::optional<limit::Cost> cost{};  // the cost that the question states
  std::span<const policy::Descriptor> descriptors{};
};

// Appends the value of the field. `redaction`: says which values are digests. `names`: the secret keys of the
// digests.
void append_question(std::string& out, const QuestionRecord& question, const policy::Redaction& redaction,
                     const policy::NamingKeys& names);

}  // namespace weir::observe
