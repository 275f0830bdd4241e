#include "weir/observe/question_record.hpp"

#include "weir/base/hex.hpp"
#include "weir/observe/json_text.hpp"

namespace weir::observe {

namespace {

// Appends `,"name":` or, behind the brace of an object, `"name":`.
void append_name(std::string& out, std::string_view name) {
  if (out.back() != '{') out += ',';
  out.append("\"").append(name).append("\":");
}

void append_text(std::string& out, std::string_view name, std::string_view text) {
  append_name(out, name);
  append_json_text(out, text);
}

void append_cost(std::string& out, const std::optional<limit::Cost>& cost) {
  if (!cost) return;
  append_name(out, "cost");
  out += std::to_string(*cost);
}

// Writes the descriptors of one question, as long as they fit.
class DescriptorsWriter {
 public:
  DescriptorsWriter(std::string& out, const policy::Redaction& redaction, const policy::NamingKeys& names)
      : out_(out), end_(out.size() + kMostQuestion), redaction_(redaction), names_(names) {}

  // Returns false if the descriptors are too long.
  [[nodiscard]] bool write(std::span<const policy::Descriptor> descriptors) {
    append_name(out_, "descriptors");
    out_ += '[';
    for (const auto& descriptor : descriptors) {
      if (&descriptor != descriptors.data()) out_ += ',';
      if (!write(descriptor)) return false;
    }
    out_ += ']';
    return true;
  }

 private:
  [[nodiscard]] bool write(const policy::Descriptor& descriptor) {
    out_ += '{';
    if (descriptor.exact) out_ += R"("exact":true)";
    append_cost(out_, descriptor.cost);
    append_name(out_, "entries");
    out_ += '[';
    for (const auto& entry : descriptor.entries) {
      if (&entry != descriptor.entries.data()) out_ += ',';
      write(entry);
      if (out_.size() > end_) return false;
    }
    out_ += "]}";
    return true;
  }

  void write(const policy::DescriptorEntry& entry) {
    out_ += '{';
    append_text(out_, "key", entry.key);
    if (!entry.value.empty() && redaction_.hides_descriptor(entry.key))
      append_text(out_, "digest",
                  base::in_hex(policy::name_descriptor_value(entry.key, entry.value, names_)));
    else
      append_text(out_, "value", entry.value);
    out_ += '}';
  }

  std::string& out_;
  const std::size_t end_;  // the largest size of `out_`
  const policy::Redaction& redaction_;
  const policy::NamingKeys& names_;
};

}  // namespace

void append_question(std::string& out, const QuestionRecord& question, const policy::Redaction& redaction,
                     const policy::NamingKeys& names) {
  out += '{';
  if (!question.domain.empty()) append_text(out, "domain", question.domain);
  append_cost(out, question.cost);
  const auto begun = out.size();
  if (!question.descriptors.empty() &&
      !DescriptorsWriter(out, redaction, names).write(question.descriptors)) {
    out.resize(begun);
    append_name(out, "cut");
    out += "true";
  }
  out += '}';
}

}  // namespace weir::observe
