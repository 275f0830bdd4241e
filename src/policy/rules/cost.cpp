#include "weir/policy/cost.hpp"

#include "policy/body/decimal.hpp"
#include "policy/body/json_numbers.hpp"
#include "policy/rules/cost_terms.hpp"

#include <algorithm>
#include <charconv>

namespace weir::policy {

namespace {

__extension__ using Product = unsigned __int128;

// The most digits before the point. With more digits, the arithmetic could overflow.
constexpr std::size_t kMostDigits = 18;
constexpr std::size_t kMostPlaces = 18;  // digits after the point; further digits only round up

// Returns the value of the digits. Returns nullopt if there are no digits, too many digits or other
// characters.
std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept {
  if (text.empty() || text.size() > kMostDigits) return std::nullopt;
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// Returns the digits after the point as a whole number. Ignores digits after kMostPlaces, but rounds up if an
// ignored digit is not 0. Returns nullopt if a character is not a digit.
std::optional<std::uint64_t> parse_places(std::string_view text) noexcept {
  const auto rest = text.substr(std::min(text.size(), kMostPlaces));
  if (!std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  const bool more = rest.find_first_not_of('0') != std::string_view::npos;
  const auto kept = parse_digits(text.substr(0, kMostPlaces));
  return kept ? std::optional(*kept + (more ? 1 : 0)) : std::nullopt;
}

std::uint64_t power_of_ten(std::size_t exponent) noexcept {
  std::uint64_t power = 1;
  while (exponent-- > 0) power *= 10;
  return power;
}

std::optional<limit::Cost> cost_in_header(const CostSource& source, const http::Fields& fields,
                                          limit::Cost otherwise) {
  const http::Field* first = nullptr;
  for (const auto& field : fields) {
    if (!http::equal_ignoring_case(field.name, source.name)) continue;
    if (first != nullptr && field.value != first->value) return std::nullopt;
    if (first == nullptr) first = &field;
  }
  return first == nullptr ? otherwise : parse_cost(first->value, source.scale);
}

std::optional<limit::Cost> cost_in_query(const CostSource& source, const http::RequestHead& head,
                                         limit::Cost otherwise) {
  const auto found = head.query_values(source.name);
  if (!found.complete) return std::nullopt;
  std::optional<limit::Cost> cost;
  for (const auto& parameter : found.values) {
    const auto said = parse_cost(parameter.decoded, source.scale);
    if (!said || (cost && said != cost)) return std::nullopt;
    cost = said;
  }
  return cost.value_or(otherwise);
}

// Returns the cost that the Content-Length states. Returns `otherwise` if the request has no body or states
// no length, because a charge has at least one unit.
limit::Cost cost_of_length(const CostSource& source, const http::RequestHead& head,
                           limit::Cost otherwise) noexcept {
  if (head.framing != http::Framing::Length || head.content_length == 0) return otherwise;
  return units_of_bytes(head.content_length, source.per);
}

bool is_repeated(const JsonNumber& number) noexcept {
  return number.fault == JsonFault::Repeated;
}

std::optional<limit::Cost> reserve_in_body(const CostSource& source, std::string_view body,
                                           limit::Cost otherwise) {
  const auto found = find_json_numbers(body, pointers_of(source.terms));
  if (found.fault != JsonFault::None) return std::nullopt;
  if (std::any_of(found.numbers.begin(), found.numbers.end(), is_repeated)) return std::nullopt;
  const auto asked = sum_of_terms(source.terms, 0, found.numbers);
  if (asked.state != ReportedCost::State::Amount || asked.amount == 0) return otherwise;
  return std::min(asked.amount, source.most);
}

}  // namespace

std::optional<limit::Cost> parse_cost(std::string_view text, std::uint32_t scale) {
  if (text.find_first_of("eE") != std::string_view::npos) {
    const auto digits = plain_digits(text);
    return digits ? parse_cost(*digits, scale) : std::nullopt;
  }
  const auto point = std::min(text.find('.'), text.size());
  if (point + 1 == text.size()) return std::nullopt;
  const auto fraction = text.substr(std::min(point + 1, text.size()));
  if (scale == 0 && fraction.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
  const auto whole = parse_digits(text.substr(0, point));
  const auto part = fraction.empty() ? 0 : parse_places(fraction);
  if (!whole || !part) return std::nullopt;
  const Product factor = std::max<std::uint32_t>(scale, 1);
  const Product unit = power_of_ten(std::min(fraction.size(), kMostPlaces));
  const Product cost = *whole * factor + (*part * factor + unit - 1) / unit;
  if (cost < 1 || cost > limit::kMaxCost) return std::nullopt;
  return static_cast<limit::Cost>(cost);
}

std::optional<limit::Cost> cost_in_head(const CostSource& source, const http::RequestHead& head,
                                        limit::Cost otherwise) {
  if (source.kind == CostSource::Kind::Length) return cost_of_length(source, head, otherwise);
  if (source.kind != CostSource::Kind::Header) return cost_in_query(source, head, otherwise);
  const auto lines = std::count_if(head.fields.begin(), head.fields.end(), [&](const http::Field& field) {
    return http::equal_ignoring_case(field.name, source.name);
  });
  if (static_cast<std::size_t>(lines) > head.bounds.repeats) return std::nullopt;
  return cost_in_header(source, head.fields, otherwise);
}

std::optional<limit::Cost> cost_in_body(const CostSource& source, std::string_view body,
                                        limit::Cost otherwise) {
  if (body.empty()) return otherwise;
  if (source.kind == CostSource::Kind::Reserve) return reserve_in_body(source, body, otherwise);
  const auto number = find_json_number(body, source.name);
  if (number.found == JsonNumber::Found::Nothing) return otherwise;
  if (number.found != JsonNumber::Found::Number) return std::nullopt;
  return parse_cost(number.digits, source.scale);
}

JsonFault json_fault(const CostSource& source, std::string_view body) {
  if (source.kind != CostSource::Kind::Reserve) return find_json_number(body, source.name).fault;
  const auto found = find_json_numbers(body, pointers_of(source.terms));
  const auto& numbers = found.numbers;
  return std::any_of(numbers.begin(), numbers.end(), is_repeated) ? JsonFault::Repeated : found.fault;
}

std::string_view describe(JsonFault fault) noexcept {
  switch (fault) {
    case JsonFault::ByteOrderMark:
      return "begins with a byte order mark, which JSON does not have; send UTF-8 without it";
    case JsonFault::Incomplete:
      return "ends within its JSON value; send all of it";
    case JsonFault::Trailing:
      return "has more text after its JSON value; send one value";
    case JsonFault::Repeated:
      return "has a member twice on the way to the cost; send it once";
    case JsonFault::TooDeep:
      static_assert(kDeepestJson == 512);
      return "has arrays and objects nested more than 512 deep; send JSON that is nested less";
    case JsonFault::Malformed:
    case JsonFault::None:
      break;
  }
  return "is not JSON; send JSON in UTF-8";
}

std::string describe(const CostSource& source) {
  switch (source.kind) {
    case CostSource::Kind::None:
      break;
    case CostSource::Kind::Header:
      return "header " + source.name;
    case CostSource::Kind::Query:
      return "query " + source.name;
    case CostSource::Kind::Json:
      return "json " + source.name;
    case CostSource::Kind::Reserve:
      return "json " + describe_terms(source.terms) +
             (source.most < limit::kMaxCost ? " up to " + std::to_string(source.most) : "");
    case CostSource::Kind::Length:
      return "Content-Length / " + std::to_string(source.per);
  }
  return "request";
}

}  // namespace weir::policy
