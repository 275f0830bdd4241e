#include "policy/body/json_numbers.hpp"

#include "policy/body/decimal.hpp"
#include "policy/body/json_reader.hpp"

#include <cassert>
#include <utility>

namespace weir::policy {

namespace {

JsonNumber number_of(const JsonValue& value) {
  using Found = JsonNumber::Found;
  if (value.repeated) return {.found = Found::Faulty, .fault = JsonFault::Repeated};
  switch (value.kind) {
    case JsonValue::Kind::Nothing:
      return {};
    case JsonValue::Kind::Null:
      return {.found = Found::Null};
    case JsonValue::Kind::Text:
    case JsonValue::Kind::Number: {
      auto digits = value.is_cut ? std::nullopt : plain_digits(value.text);
      if (digits) return {.found = Found::Number, .digits = std::move(*digits)};
      break;
    }
    case JsonValue::Kind::Boolean:
    case JsonValue::Kind::Structured:
      break;
  }
  return {.found = Found::Faulty};
}

}  // namespace

class JsonNumberReader::Impl {
 public:
  explicit Impl(std::span<const std::string> pointers) : reader_(add(pointers)) {}

  void read(std::string_view piece) { reader_.read(piece); }
  JsonNumbers finish() {
    JsonNumbers result{.fault = reader_.finish(values_)};
    if (result.fault == JsonFault::None)
      for (const auto value : values_of_pointers_) result.numbers.push_back(number_of(values_[value]));
    values_.clear();
    return result;
  }
  [[nodiscard]] std::size_t memory() const noexcept {
    return sizeof *this + reader_.memory() + values_.capacity() * sizeof(JsonValue);
  }

 private:
  const JsonPointers& add(std::span<const std::string> pointers) {
    assert(pointers.size() <= kMostPointers);
    for (const auto& pointer : pointers) values_of_pointers_.push_back(pointers_.add(pointer));
    return pointers_;
  }

  JsonPointers pointers_{JsonNames::Exact};
  std::vector<std::size_t> values_of_pointers_;  // for each pointer: the index of its value in `values_`
  std::vector<JsonValue> values_;                // the values of the document that finish() reads
  JsonReader reader_;
};

JsonNumberReader::JsonNumberReader(std::span<const std::string> pointers)
    : impl_(std::make_unique<Impl>(pointers)) {}
JsonNumberReader::JsonNumberReader(JsonNumberReader&&) noexcept = default;
JsonNumberReader& JsonNumberReader::operator=(JsonNumberReader&&) noexcept = default;
JsonNumberReader::~JsonNumberReader() = default;

void JsonNumberReader::read(std::string_view piece) {
  impl_->read(piece);
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
