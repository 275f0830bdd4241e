// What there is to say of an exchange once it has ended: the counters and the line of the log.
#include "proxy/client/session.hpp"
#include "proxy/exchange/exchange.hpp"

#include <new>

namespace weir::proxy {

namespace {

std::string_view name_of(const policy::Rule* rule) noexcept {
  return rule != nullptr ? std::string_view(rule->name) : std::string_view{};
}

}  // namespace

// What the upstream's answer, or its silence, says of its load.
limit::Ending Exchange::how_it_went() const noexcept {
  if (answered_ != base::TimePoint{} && space_->response.status >= 500) return {};  // no proof of speed
  if (answered_ != base::TimePoint{}) return {.latency = answered_ - sent_};
  return {.failed = failure_ == "upstream_failed"};
}

void Exchange::account(base::TimePoint now) noexcept {
  auto& counters = worker_.counters;
  const auto label = route_ ? std::optional(config_.label_of_route(*route_)) : std::nullopt;
  counters.requests(label, status_).add();
  // Of a tunnel the time until it stood: how long it then lasts says nothing of weir.
  counters.request_seconds.record((status_ == 101 ? answered_ : now) - started_);
  counters.bytes_in.add(request_body_->filled());
  if (decided_) counters.verdicts(static_cast<observe::Verdict>(decision_.verdict)).add();
  if (answered_ != base::TimePoint{}) {
    counters.upstream_seconds.record(answered_ - sent_);
    if (space_->response.status >= 500) tallies().errors.add();
  }
  if (worker_.access_log == nullptr) return;
  try {
    log(now);
  } catch (const std::bad_alloc&) {
    counters.access_log_dropped.add();
  }
}

// Without what the rules said.
observe::ReplayRecord Exchange::replay_record() const {
  const auto& client = space_->request.client;
  const auto& journal = space_->journal;
  return {.run = observe::run_of(config_.names.table),
          .start = started_,
          .clock_ahead = started_ - machine_started_,
          .asked = asked_at_,
          .turn = journal.charged,
          .api_key = policy::name_api_key(client, config_.names),
          .user = client.user,
          .org = client.org,
          .service = client.service,
          .device = client.device,
          .tier = client.tier,
          .country = client.country,
          .unverified = !client.token.empty(),
          .load = config_.elastic ? std::optional(space_->request.load) : std::nullopt,
          .unmet = name_of(unmet_),
          .closed = name_of(closed_),
          .rules = {},
          .amendments = {journal.amendments.data(), journal.amendments.size()},
          .all_rules = config_.rules,
          .cut = journal.cut,
          .lost_from = worker_.lost_from(),
          .in_memory = !space_->evaluation.local.empty()};
}

void Exchange::log(base::TimePoint now) {
  const auto& space = *space_;
  const auto& client = space.request.client;
  const auto fields = worker_.access_log->fields();
  const auto said = [&](std::string_view name) {
    const auto* field = http::find_field(space.head.fields, name);
    return field != nullptr ? field->value : std::string_view{};
  };
  const auto span = [](base::TimePoint from, base::TimePoint to) {
    return from == base::TimePoint{} || to == base::TimePoint{} ? base::Duration{0} : to - from;
  };
  constexpr std::string_view kVerdicts[] = {"forward", "delay", "reject"};
  std::string redacted;
  observe::AccessRecord record{
      .start = machine_started_,
      .total = now - started_,
      .queued = span(started_, departed_),
      .upstream = span(sent_, answered_),
      .client = client.address,
      .method = space.head.method,
      .target = config_.redaction.redacted(space.head.target, redacted),
      .host = space.head.authority,
      .route = space.request.route,
      .status = status_,
      .bytes_in = request_body_->received() + bytes_up_,
      .bytes_out = bytes_out_,
      .verdict = decided_ ? kVerdicts[static_cast<std::size_t>(decision_.verdict)] : std::string_view{},
      .rule = name_of(decision_.rule),
      .key = gate_.key_in(decision_.rule),
      .server = server_ != nullptr ? std::string_view(*server_) : std::string_view{},
      .request_id = space.request_id.empty() && client.peer_trusted ? said("x-request-id")
                                                                    : std::string_view(space.request_id),
      .trace_id = observe::trace_id_of(said("traceparent")),
      .user_agent = said("user-agent"),
      .error = failure_};
  if (observe::LogFields::usual().holds_all(fields)) return worker_.access_log->record(record);
  log_in_full(record, fields);
}

// What is not among the usual costs more to gather.
void Exchange::log_in_full(observe::AccessRecord& record, observe::LogFields fields) {
  auto replay = replay_record();
  record.api_key = replay.api_key;
  record.user = replay.user;
  record.org = replay.org;
  record.service = replay.service;
  record.device = replay.device;
  record.tier = replay.tier;
  record.country = replay.country;
  if (!fields.has(observe::LogField::Replay)) return worker_.access_log->record(record);
  const auto rules = gate_.what_rules_said();
  if (decided_) replay.rules = {rules.data(), rules.size()};
  record.replay = &replay;
  worker_.access_log->record(record);
}

}  // namespace weir::proxy
