#include "weir/ask/forwarded_question.hpp"

#include "weir/policy/identity/client_address.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace weir::ask {

namespace {

constexpr std::string_view kMethod = "X-Forwarded-Method";
constexpr std::string_view kUri = "X-Forwarded-Uri";
constexpr std::string_view kHost = "X-Forwarded-Host";
constexpr std::string_view kProto = "X-Forwarded-Proto";
// Fields that do not become header fields of the question. They concern the connection between the proxy and
// weir, or other members of the question have their content.
constexpr std::array<std::string_view, 9> kDropped{
    "Content-Length", "Expect", "Host", kTokenField, "X-Forwarded-For", kHost, kMethod, kProto, kUri};

bool is_clients(const http::Field& field, bool authorization_is_token) noexcept {
  if (field.hop_by_hop || (authorization_is_token && field.id == http::FieldId::Authorization)) return false;
  return std::none_of(kDropped.begin(), kDropped.end(),
                      [&](std::string_view name) { return http::equal_ignoring_case(field.name, name); });
}

// Returns the first field name of kUri, kMethod, kHost and kProto that appears several times; empty: none
// does.
std::string_view repeated_field(const http::Fields& fields) {
  for (const auto name : {kUri, kMethod, kHost, kProto}) {
    const auto named = [&](const http::Field& field) { return http::equal_ignoring_case(field.name, name); };
    if (std::count_if(fields.begin(), fields.end(), named) > 1) return name;
  }
  return {};
}

// Returns the last address of X-Forwarded-For. Returns nullopt if there is none, or if the last element is no
// address.
std::optional<base::IpAddress> last_address(const http::Fields& fields) {
  const base::IpAddress nobody;
  const std::array trusted{*base::Cidr::parse("::/128")};
  const auto found = policy::client_address(trusted, policy::AddressField::XForwardedFor, nobody, fields);
  return found == nobody ? std::nullopt : std::optional(found);
}

// Returns the elements of X-Forwarded-For without the last one.
std::string earlier_addresses(const http::Fields& fields) {
  std::string list;
  for (const auto& field : fields)
    if (field.id == http::FieldId::XForwardedFor) list.append(list.empty() ? "" : ", ").append(field.value);
  const auto trim = [&] { list.erase(list.find_last_not_of(" \t,") + 1); };
  trim();
  const auto comma = list.rfind(',');
  list.erase(comma == std::string::npos ? 0 : comma);
  trim();
  return list;
}

}  // namespace

base::Result<Question> forwarded_question(const http::RequestHead& head, bool authorization_is_token) {
  const auto value_of = [&](std::string_view name) {
    const auto* field = http::find_field(head.fields, name);
    return field != nullptr ? field->value : std::string_view{};
  };
  if (const auto name = repeated_field(head.fields); !name.empty())
    return base::Error{std::string(name) +
                       " appears more than once; the asking proxy must replace what its client has sent"};
  Question question;
  question.ip = last_address(head.fields);
  question.target = value_of(kUri);
  if (question.target.empty())
    return base::Error{"X-Forwarded-Uri is missing; the asking proxy must send the path and query in it"};
  if (!question.ip)
    return base::Error{
        "X-Forwarded-For has no address at its end; the asking proxy must append its client's"};
  const auto method = value_of(kMethod);
  question.method = method.empty() ? head.method : method;
  question.host = value_of(kHost);
  question.secure = http::equal_ignoring_case(value_of(kProto), "https");
  for (const auto& field : head.fields)
    if (is_clients(field, authorization_is_token)) question.headers.emplace_back(field.name, field.value);
  if (auto earlier = earlier_addresses(head.fields); !earlier.empty())
    question.headers.emplace_back("X-Forwarded-For", std::move(earlier));
  question.answer_waits = true;
  return question;
}

base::Result<unsigned> refusal_status(std::string_view query) {
  constexpr std::string_view kName = "refuse=";
  if (query.empty()) return 0U;
  unsigned status = 0;
  const auto digits = query.starts_with(kName) ? query.substr(kName.size()) : std::string_view{};
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), status);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == digits.data() + digits.size();
  if (!whole || status < 400 || status > 599)
    return base::Error{"the query has to be empty, or refuse= with a status from 400 to 599: refuse=403"};
  return status;
}

}  // namespace weir::ask
