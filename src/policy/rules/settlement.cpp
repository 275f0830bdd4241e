#include "weir/policy/settlement.hpp"

#include "policy/body/decimal.hpp"
#include "policy/rules/cost_terms.hpp"

#include "weir/http/grpc_status.hpp"
#include "weir/policy/cost.hpp"

#include <algorithm>

namespace weir::policy {

namespace {

constexpr unsigned kFirstStatus = 100, kLastStatus = 599;

std::optional<unsigned> parse_status(std::string_view text) noexcept {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.size() != 3 || !std::all_of(text.begin(), text.end(), digit)) return std::nullopt;
  unsigned status = 0;
  for (const char c : text) status = status * 10 + static_cast<unsigned>(c - '0');
  if (status < kFirstStatus || status > kLastStatus) return std::nullopt;
  return status;
}

std::string describe(const StatusRange& range) {
  auto first = std::to_string(range.first);
  if (range.first == range.last) return first;
  if (range.first % 100 == 0 && range.last == range.first + 99) return first.substr(0, 1) + "xx";
  return first + "-" + std::to_string(range.last);
}

std::string describe_estimate(const Settlement& settlement) {
  if (!settlement.stream) return "";
  const auto& stream = *settlement.stream;
  return ", " + std::to_string(stream.per_event) + " an event" + (stream.cut ? ", cut" : "");
}

std::string describe_bodies(Bodies bodies) {
  switch (bodies) {
    case Bodies::Response:
      break;
    case Bodies::Request:
      return "bytes of the request";
    case Bodies::Both:
      return "bytes of the request and the answer";
  }
  return "bytes of the answer";
}

}  // namespace

base::Result<StatusRange> parse_statuses(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return base::Error{"found \"" + std::string(text) + "\"" + std::string(why) +
                       "; expected a status such as \"401\", a class such as \"5xx\", or a range such as "
                       "\"500-504\", from 100 to 599"};
  };
  if (text.size() == 3 && text.ends_with("xx") && text.front() >= '1' && text.front() <= '5') {
    const auto first = static_cast<unsigned>(text.front() - '0') * 100;
    return StatusRange{first, first + 99};
  }
  const auto dash = std::min(text.find('-'), text.size());
  const auto first = parse_status(text.substr(0, dash));
  const auto last = dash != text.size() ? parse_status(text.substr(dash + 1)) : first;
  if (!first || !last) return wrong("");
  if (*first > *last) return wrong(", whose end is below its start");
  return StatusRange{*first, *last};
}

bool is_charged(const Settlement& settlement, unsigned status) noexcept {
  const auto holds = [status](const StatusRange& r) { return r.first <= status && status <= r.last; };
  const auto& charged = settlement.charged;
  if (charged.empty()) return settlement.charged_calls == 0;
  return std::any_of(charged.begin(), charged.end(), holds);
}

bool is_call_charged(const Settlement& settlement, unsigned grpc_status) noexcept {
  return (settlement.charged_calls >> grpc_status & 1U) != 0;
}

ReportedCost reported_cost_in_head(const Settlement& settlement, const http::Fields& fields) {
  const http::Field* first = nullptr;
  for (const auto& field : fields) {
    if (!http::equal_ignoring_case(field.name, settlement.name)) continue;
    if (first != nullptr && field.value != first->value) return {ReportedCost::State::Unreadable};
    if (first == nullptr) first = &field;
  }
  if (first == nullptr) return {};
  const auto digits = plain_digits(first->value);
  return digits ? read_amount(*digits, settlement.scale) : ReportedCost{ReportedCost::State::Unreadable};
}

ReportedCost reported_cost_in_body(const Settlement& settlement, std::string_view body) {
  if (body.empty()) return {};
  const auto found = find_json_numbers(body, pointers_of(settlement.terms));
  if (found.fault != JsonFault::None) return {ReportedCost::State::Unreadable};
  return sum_of_terms(settlement.terms, settlement.scale, found.numbers);
}

limit::Cost cost_of_bytes(const Settlement& settlement, std::uint64_t request,
                          std::uint64_t response) noexcept {
  std::uint64_t octets = 0;
  if (settlement.bodies != Bodies::Response) octets += request;
  if (settlement.bodies != Bodies::Request) octets += response;
  return units_of_bytes(octets, settlement.per);
}

std::string describe_charge(const Settlement& settlement) {
  std::string words;
  const auto add = [&words](std::string_view word) {
    (words += words.empty() ? "charged on " : ", ") += word;
  };
  for (const auto& range : settlement.charged) add(describe(range));
  for (unsigned status = 0; status <= http::kMostGrpcStatus; ++status)
    if (is_call_charged(settlement, status)) add(http::grpc_status_name(status));
  return words;
}

std::string describe_cost(const Settlement& settlement) {
  switch (settlement.kind) {
    case Settlement::Kind::None:
      break;
    case Settlement::Kind::Header:
      return "header " + settlement.name + " of the answer";
    case Settlement::Kind::Json:
      return "json " + describe_terms(settlement.terms) + " of the answer" + describe_estimate(settlement);
    case Settlement::Kind::Bytes:
      return describe_bodies(settlement.bodies) + " / " + std::to_string(settlement.per);
  }
  return "request";
}

}  // namespace weir::policy
