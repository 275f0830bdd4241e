// Metrics of certificates and of the process itself.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

namespace {

void tell_tls(MetricsPage& page) {
  const auto figures = page.sources().certificates ? page.sources().certificates() : TlsFigures{};
  if (figures.certificates.empty() && figures.watched == 0) return;
  Family expiry =
      page.gauge("weir_tls_certificate_not_after_seconds", "Until when a certificate is good, in Unix time.");
  Family staple =
      page.gauge("weir_tls_staple_not_after_seconds",
                 "Until when an OCSP response is good, in Unix time; none is stapled later. 0: it is "
                 "another certificate's.");
  const auto unix_time = [](std::chrono::sys_seconds at) {
    return static_cast<double>(at.time_since_epoch().count());
  };
  for (const auto& each : figures.certificates) {
    const Labels labels{{"certificate", each.file}, {"listener", each.listener}};
    expiry.add(labels, unix_time(each.not_after));
    if (each.stapled_until) staple.add(labels, unix_time(*each.stapled_until));
  }
  page.put(expiry);
  page.put(staple);
  Family own = page.gauge("weir_tls_client_certificate_not_after_seconds",
                          "Until when a certificate is good that weir shows to servers, in Unix time.");
  for (const auto& each : figures.own)
    own.add({{"certificate", each.file}, {"shown_to", each.shown_to}}, unix_time(each.not_after));
  page.put(own);
  page.put(page.counter("weir_tls_renewals_total", "Reloads of changed TLS files.")
               .add({{"result", "ok"}}, figures.renewed)
               .add({{"result", "faulty"}}, figures.faulty));
}

void tell_reloads(MetricsPage& page) {
  if (!page.sources().reloads) return;
  const auto figures = page.sources().reloads();
  page.put(page.counter("weir_reloads_total", "Reloads of the configuration while weir ran.")
               .add({{"result", "ok"}}, figures.ok)
               .add({{"result", "failed"}}, figures.failed));
  page.put(page.gauge("weir_config_last_reload_successful",
                      "Whether the last of them changed anything: 0 if it failed.")
               .add({}, figures.last_ok ? 1.0 : 0.0));
  page.put(page.gauge("weir_config_last_reload_timestamp_seconds",
                      "When the present configuration came into force, in Unix time.")
               .add({}, static_cast<double>(figures.last.time_since_epoch().count())));
}

void tell_upgrades(MetricsPage& page) {
  if (!page.sources().upgrades) return;
  const auto figures = page.sources().upgrades();
  page.put(page.counter("weir_upgrades_total",
                        "Times that a new process was to take over, from this one and those before it.")
               .add({{"result", "ok"}}, figures.ok)
               .add({{"result", "failed"}}, figures.failed));
  page.put(page.counter("weir_upgrade_connections_lost_total",
                        "Connections that were to come over in an upgrade and were dropped.")
               .add({}, figures.lost));
}

// Counts failed work of the control thread, which continued afterwards.
void tell_faults(MetricsPage& page) {
  Family faults =
      page.counter("weir_control_faults_total",
                   "Times that work of the admin listener or of alerts failed by a fault of weir's own.");
  if (page.sources().admin_faults) faults.add({{"part", "admin"}}, page.sources().admin_faults());
  if (page.sources().alert_faults) faults.add({{"part", "alerts"}}, page.sources().alert_faults());
  page.put(faults);
}

void tell_self(MetricsPage& page) {
  page.put(page.gauge("weir_build", "Always 1; says which weir this is.")
               .add({{"version", page.sources().version}}, 1.0));
  page.put(page.gauge("weir_workers", "Threads that serve.").add({}, page.sources().counters.size()));
  std::size_t top_bytes = 0;
  for (const auto* counters : page.sources().counters)
    top_bytes += counters->top ? counters->top->memory() : 0;
  page.put(page.gauge("weir_top_memory_bytes", "What it takes to know who spends most.").add({}, top_bytes));
  using Seconds = std::chrono::duration<double>;
  page.put(page.gauge("process_start_time_seconds", "When weir began to serve, in Unix time.")
               .add({}, Seconds(page.sources().started.time_since_epoch()).count()));
  const auto figures = page.sources().process ? page.sources().process() : std::nullopt;
  if (!figures) return;
  page.put(page.gauge("process_resident_memory_bytes", "Resident memory.").add({}, figures->resident_bytes));
  page.put(page.gauge("process_open_fds", "Open file descriptors.").add({}, figures->open_descriptors));
  page.put(
      page.gauge("process_max_fds", "File descriptors that may be open.").add({}, figures->most_descriptors));
  page.put(
      page.counter("process_cpu_seconds_total", "CPU time, user and system.").add({}, figures->cpu_seconds));
}

}  // namespace

void tell_process(MetricsPage& page) {
  tell_tls(page);
  tell_reloads(page);
  tell_upgrades(page);
  tell_faults(page);
  tell_self(page);
}

}  // namespace weir::admin
