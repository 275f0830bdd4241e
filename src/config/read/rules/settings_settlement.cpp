// Reads `charge`, and costs that depend on the response.
#include "config/read/settings_sections.hpp"

#include "weir/http/grpc_status.hpp"
#include "weir/limit/settle.hpp"

#include <algorithm>

namespace weir::config {

namespace {

constexpr std::uint64_t kMostBody = 16 << 20;

policy::Settlement& settlement_of(policy::Rule& rule) {
  if (!rule.settlement) rule.settlement.emplace();
  return *rule.settlement;
}

void read_place(const TableReader& cost, bool header, policy::Settlement& settlement) {
  using Kind = policy::Settlement::Kind;
  settlement.kind = header ? Kind::Header : Kind::Json;
  if (!header) {
    settlement.terms = read_terms(cost, "response_json", "/usage/total_tokens");
    return;
  }
  settlement.name = cost.text("response_header");
  if (!is_token(settlement.name))
    cost.mistake("response_header",
                 "found " + in_quotes(settlement.name) + "; expected a name such as \"X-Tokens\"");
}

void read_bound(const TableReader& cost, bool header, policy::Rule& into) {
  auto& settlement = settlement_of(into);
  const bool request = into.cost_from.kind == policy::CostSource::Kind::Reserve;
  if (header && !request && cost.mentions("max_body"))
    cost.mistake(
        "max_body",
        "found with response_header; only response_json and a reserve from the request use max_body");
  settlement.max_body = cost.size("max_body").value_or(settlement.max_body);
  if (request)
    read_cost_body(cost, into);
  else if (settlement.max_body < 1 || settlement.max_body > kMostBody)
    cost.mistake("max_body",
                 "found " + std::to_string(settlement.max_body) +
                     " bytes; expected 1 byte to 16MiB, because weir copies so much of each response");
}

void read_stream(const TableReader& cost, bool header, policy::Settlement& settlement) {
  if (!cost.has("stream")) return;
  if (header) cost.mistake("stream", "found with response_header; only response_json reads streams");
  const auto stream = cost.table("stream", schema::kStream);
  settlement.stream = {.per_event = static_cast<limit::Cost>(stream.whole("per_event")),
                       .cut = stream.boolean("cut")};
}

void read_charged_statuses(const TableReader& charge, policy::Settlement& settlement) {
  const auto texts = charge.texts("status");
  if (texts.empty()) charge.mistake("status", "found none; expected at least one status such as \"401\"");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto range = policy::parse_statuses(texts[i]);
    if (range)
      settlement.charged.push_back(*range);
    else
      charge.mistake_in("status", i, range.error().message);
  }
}

void read_charged_calls(const TableReader& charge, policy::Settlement& settlement) {
  const auto texts = charge.texts("grpc_status");
  if (texts.empty())
    charge.mistake("grpc_status", "found none; expected at least one status such as \"UNAUTHENTICATED\"");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto status = http::parse_grpc_status(texts[i]);
    if (status)
      settlement.charged_calls |= std::uint32_t{1} << *status;
    else
      charge.mistake_in(
          "grpc_status", i,
          "found " + in_quotes(texts[i]) + "; expected a name or a number of " + http::grpc_status_names());
  }
}

}  // namespace

void read_charge(const TableReader& rule, policy::Rule& into) {
  if (!rule.has("charge")) return;
  const auto charge = rule.table("charge", schema::kCharge);
  if (charge.has("status")) read_charged_statuses(charge, settlement_of(into));
  if (charge.has("grpc_status")) read_charged_calls(charge, settlement_of(into));
  if (!charge.mentions("status") && !charge.mentions("grpc_status") && !charge.flawed())
    charge.missing("status", "status = [\"401\"], or grpc_status = [\"UNAUTHENTICATED\"] for gRPC calls");
}

bool is_settled_cost(const TableReader& cost) {
  return cost.mentions("response_header") || cost.mentions("response_json") || cost.mentions("reserve") ||
         cost.mentions("stream");
}

void read_settled_cost(const TableReader& cost, policy::Rule& into) {
  auto& settlement = settlement_of(into);
  const bool header = cost.has("response_header");
  if (header == cost.has("response_json")) {
    if (cost.mentions("reserve")) read_reserve(cost, into);
    if (!cost.flawed())
      cost.mistake("", "found " + std::string(header ? "two places" : "no place") +
                           " of the cost in the answer; expected one: { response_header = \"…\", reserve = n "
                           "} or { response_json = "
                           "\"…\", reserve = n }");
    return;
  }
  for (const auto key : {"header", "query", "json", "default"})
    if (cost.mentions(key))
      cost.mistake(key,
                   "found beside a cost that the response reports; expected reserve = n, and nothing of the "
                   "request");
  read_place(cost, header, settlement);
  read_stream(cost, header, settlement);
  if (cost.has("scale")) settlement.scale = static_cast<std::uint32_t>(cost.whole("scale"));
  read_reserve(cost, into);
  read_bound(cost, header, into);
}

void check_settlement(const TableReader& rule, const policy::Rule& read) {
  const auto* key = rule.mentions("charge") ? "charge" : "cost";
  if (!read.settlement) return;
  if (read.settlement->charged_calls != 0 && read.settlement->kind != policy::Settlement::Kind::None)
    rule.mistake("cost",
                 "found a cost that the response reports beside charge.grpc_status; expected one of them, "
                 "because the status of a call comes after its messages");
  if (limit::settles(read.limiter)) return;
  const bool holds = limit::holds(read.limiter);
  rule.mistake(key, holds ? "found beside an algorithm that counts requests in flight; expected an algorithm "
                            "that counts over time"
                          : "found beside leaky_bucket, which cannot correct a charge after the response; "
                            "expected another algorithm, in a separate rule");
}

}  // namespace weir::config
