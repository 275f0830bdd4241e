#include "proxy/exchange/access_report.hpp"

#include "weir/observe/question_record.hpp"

#include <algorithm>
#include <new>

namespace weir::proxy {

namespace {

std::string_view name_of(const policy::Rule* rule) noexcept {
  return rule != nullptr ? std::string_view(rule->name) : std::string_view{};
}

base::Duration span(base::TimePoint from, base::TimePoint to) noexcept {
  return from == base::TimePoint{} || to == base::TimePoint{} ? base::Duration{0} : to - from;
}

std::string_view field_of(const ExchangeBuffers& buffers, std::string_view name) noexcept {
  const auto* field = http::find_field(buffers.head.fields, name);
  return field != nullptr ? field->value : std::string_view{};
}

std::string_view verdict_of(const RequestReport& report) noexcept {
  constexpr std::string_view kVerdicts[] = {"forward", "delay", "reject"};
  return report.decided ? kVerdicts[static_cast<std::size_t>(report.decision.verdict)] : std::string_view{};
}

void count(const RequestReport& report, const ReportSources& sources, base::TimePoint ended) {
  auto& counters = sources.worker.counters;
  const auto& config = sources.config;
  const auto index = report.route ? std::optional(config.index_of_route(*report.route)) : std::nullopt;
  counters.requests(index, report.status).add();
  // Requests that were sent to no server have a separate metric, because a refusal says nothing about the
  // speed of a route. For a tunnel, counts only the time until it opened. Omits questions, because the
  // exchange of a question may last as long as its permit.
  auto& seconds =
      report.sent == base::TimePoint{} ? counters.local_reply_seconds : counters.route(*index).seconds;
  if (!report.is_question) seconds.record((report.status == 101 ? report.answered : ended) - report.started);
  counters.bytes_in.add(report.octets_read);
  if (report.decided) counters.verdicts(static_cast<observe::Verdict>(report.decision.verdict)).add();
  if (report.answered == base::TimePoint{}) return;
  if (report.server_status >= 500)
    counters.upstream(config.index_of_upstream(config.routes[*report.route].upstream)).errors.add();
}

// Returns the replay record of the request. The caller fills in `rules`.
observe::ReplayRecord replay_record(const RequestReport& report, const ReportSources& sources) {
  const auto& config = sources.config;
  const auto& client = sources.buffers.request.client;
  const auto& journal = sources.buffers.journal;
  return {.run = observe::run_of(config.names.table),
          .start = report.started,
          .clock_ahead = report.started - report.machine_started,
          .evaluated_at = report.asked_at,
          .timestamp = journal.charged,
          .api_key = policy::name_api_key(client, config.names),
          .user = client.user,
          .org = client.org,
          .service = client.service,
          .device = client.device,
          .tier = client.tier,
          .country = client.country,
          .unverified = !client.token.empty(),
          .load = config.elastic ? std::optional(sources.buffers.request.load) : std::nullopt,
          .unmet = name_of(report.rejecting_rule),
          .closed = name_of(report.closed),
          .rules = {},
          .amendments = {journal.amendments.data(), journal.amendments.size()},
          .all_rules = config.rules,
          .cut = journal.cut,
          .lost_from = sources.worker.lost_from(),
          .in_memory = !sources.buffers.evaluation.local.empty()};
}

// Writes the access-log line with the optional fields. These fields take more time to collect.
void log_in_full(observe::AccessRecord& record, observe::LogFields fields, const RequestReport& report,
                 const ReportSources& sources) {
  auto& access_log = *sources.worker.access_log;
  auto replay = replay_record(report, sources);
  record.api_key = replay.api_key;
  record.user = replay.user;
  record.org = replay.org;
  record.service = replay.service;
  record.device = replay.device;
  record.tier = replay.tier;
  record.country = replay.country;
  std::string question;
  if (report.is_question && fields.has(observe::LogField::Question)) {
    const auto& request = sources.buffers.request;
    observe::append_question(question, {request.domain, request.stated_cost, request.descriptors},
                             sources.config.redaction, sources.config.names);
    record.question = question;
  }
  if (!fields.has(observe::LogField::Replay)) return access_log.record(record);
  const auto rules = sources.admission.applied_rules();
  if (report.decided) replay.rules = {rules.data(), rules.size()};
  record.replay = &replay;
  access_log.record(record);
}

// Returns the usual fields of the access log. `redacted`: memory for the target without its hidden values.
observe::AccessRecord access_record(const RequestReport& report, const ReportSources& sources,
                                    base::TimePoint ended, std::string& redacted) {
  const auto& buffers = sources.buffers;
  const auto& client = buffers.request.client;
  const bool takes_id = buffers.request_id.empty() && client.peer_trusted;
  return {.start = report.machine_started,
          .total = ended - report.started,
          .queued = span(report.started, report.departed),
          .upstream = span(report.sent, report.answered),
          .paced = report.paced,
          .client = client.address,
          .protocol = buffers.head.http2                ? "HTTP/2"
                      : buffers.head.minor_version == 0 ? "HTTP/1.0"
                                                        : "HTTP/1.1",
          .method = buffers.head.method,
          .target = sources.config.redaction.redacted(buffers.head.target, redacted),
          .host = buffers.head.authority,
          .route = buffers.request.route,
          .status = report.status,
          .bytes_in = report.body_in + report.tunnel_in,
          .bytes_out = report.body_out,
          .verdict = verdict_of(report),
          .rule = name_of(report.decision.rule),
          .key = sources.admission.key_in(report.decision.rule),
          .server = report.server != nullptr ? std::string_view(*report.server) : std::string_view{},
          .request_id = takes_id ? field_of(buffers, "x-request-id") : std::string_view(buffers.request_id),
          .trace_id = buffers.trace ? buffers.trace->trace_id()
                                    : observe::trace_id_of(field_of(buffers, "traceparent")),
          .user_agent = field_of(buffers, "user-agent"),
          .error = report.failure};
}

void log(observe::AccessRecord& record, const RequestReport& report, const ReportSources& sources) {
  auto& access_log = *sources.worker.access_log;
  const auto fields = access_log.fields();
  if (observe::LogFields::usual().holds_all(fields)) return access_log.record(record);
  log_in_full(record, fields, report, sources);
}

// Returns true if weir exports the request's span: the trace is sampled, or weir refused the request and
// [tracing] includes all refusals. Decides about a refused request only at its end. This is early enough,
// because no server has got the request's trace context.
bool is_exported(const RequestReport& report, const ReportSources& sources) noexcept {
  const auto& trace = sources.buffers.trace;
  if (!trace || sources.worker.spans == nullptr) return false;
  const bool refused = report.decided && report.decision.verdict == policy::Verdict::Reject;
  return trace->sampled || (refused && sources.config.tracing->refusals);
}

std::optional<observe::ShownLimit> shown_limit(const RequestReport& report) noexcept {
  const auto& decision = report.decision;
  if (!report.decided || decision.limiter == nullptr) return std::nullopt;
  const auto limit = limit::quota_of(*decision.limiter, decision.outcome);
  return observe::ShownLimit{limit, std::min<std::uint64_t>(decision.outcome.remaining, limit)};
}

void export_span(const observe::AccessRecord& record, const RequestReport& report,
                 const ReportSources& sources) {
  const auto& config = sources.config;
  const auto* route = report.route ? &config.routes[*report.route] : nullptr;
  sources.worker.spans->record(
      {.record = record,
       .trace = *sources.buffers.trace,
       .upstream = route != nullptr ? std::string_view(route->upstream_name) : std::string_view(),
       .secure = sources.buffers.request.secure,
       .limit = shown_limit(report),
       .redis = report.redis});
}

}  // namespace

limit::Ending ending_of(const RequestReport& report) noexcept {
  if (report.reported_ending) return *report.reported_ending;
  const bool answered = report.answered != base::TimePoint{};
  if (!answered) return {.failed = report.failure == "upstream_failed"};
  // no latency: a fast error does not prove that the server has capacity
  if (report.server_status >= 500) return {};
  return {.latency = report.answered - report.sent};
}

void report_access(const RequestReport& report, const ReportSources& sources,
                   base::TimePoint ended) noexcept {
  auto& worker = sources.worker;
  count(report, sources, ended);
  const bool exported = is_exported(report, sources);
  if (worker.access_log == nullptr && !exported) return;
  try {
    std::string redacted;
    auto record = access_record(report, sources, ended, redacted);
    if (worker.access_log != nullptr) log(record, report, sources);
    if (exported) export_span(record, report, sources);
  } catch (const std::bad_alloc&) {
    worker.counters.access_log_dropped.add();
  }
}

}  // namespace weir::proxy
