// Metrics of certificates and of the process itself.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

namespace {

void write_acme(MetricsPage& page, const AcmeFigures& figures) {
  page.put(page.counter("weir_acme_orders_total", "Orders of certificates (ACME), by result.")
               .add({{"result", "ok"}}, figures.ok)
               .add({{"result", "failed"}}, figures.failed));
  page.put(page.gauge("weir_acme_placeholders",
                      "Certificates that weir has not received yet; it serves self-signed placeholders.")
               .add({}, static_cast<double>(figures.placeholders)));
}

void write_tls(MetricsPage& page) {
  const auto figures = page.sources().certificates ? page.sources().certificates() : TlsFigures{};
  if (figures.acme) write_acme(page, *figures.acme);
  if (figures.certificates.empty() && figures.watched == 0) return;
  Family expiry =
      page.gauge("weir_tls_certificate_not_after_seconds", "Unix time at which the certificate expires.");
  Family staple = page.gauge("weir_tls_staple_not_after_seconds",
                             "Unix time at which the OCSP response expires and is no longer stapled; 0: it "
                             "is for another certificate.");
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
  Family revocations = page.gauge("weir_tls_client_crl_not_after_seconds",
                                  "Unix time at which the first revocation list in the file expires.");
  for (const auto& each : figures.revocations)
    revocations.add({{"file", each.file}, {"listener", each.listener}}, unix_time(each.not_after));
  if (!figures.revocations.empty()) page.put(revocations);
  Family own = page.gauge("weir_tls_client_certificate_not_after_seconds",
                          "Unix time at which the certificate that weir presents to servers expires.");
  for (const auto& each : figures.own)
    own.add({{"certificate", each.file}, {"shown_to", each.shown_to}}, unix_time(each.not_after));
  page.put(own);
  page.put(page.counter("weir_tls_renewals_total", "Reloads of changed TLS files, by result.")
               .add({{"result", "ok"}}, figures.renewed)
               .add({{"result", "faulty"}}, figures.faulty));
}

void write_reloads(MetricsPage& page) {
  if (!page.sources().reloads) return;
  const auto figures = page.sources().reloads();
  page.put(page.counter("weir_reloads_total", "Reloads of the configuration, by result.")
               .add({{"result", "ok"}}, figures.ok)
               .add({{"result", "failed"}}, figures.failed));
  page.put(page.gauge("weir_config_last_reload_successful", "1 if the last reload succeeded, else 0.")
               .add({}, figures.last_ok ? 1.0 : 0.0));
  page.put(page.gauge("weir_config_last_reload_timestamp_seconds",
                      "Unix time at which the running configuration was loaded.")
               .add({}, static_cast<double>(figures.last.time_since_epoch().count())));
}

void write_upgrades(MetricsPage& page) {
  if (!page.sources().upgrades) return;
  const auto figures = page.sources().upgrades();
  page.put(page.counter("weir_upgrades_total",
                        "Upgrades to a new process, including those of earlier processes, by result.")
               .add({{"result", "ok"}}, figures.ok)
               .add({{"result", "failed"}}, figures.failed));
  page.put(page.counter("weir_upgrade_connections_lost_total", "Connections lost in an upgrade.")
               .add({}, figures.lost));
}

// Writes how many exceptions interrupted work of the control thread. The thread continued after each
// exception.
void write_faults(MetricsPage& page) {
  Family faults =
      page.counter("weir_control_faults_total", "Internal errors of the admin listener or of alerts.");
  if (page.sources().admin_faults) faults.add({{"part", "admin"}}, page.sources().admin_faults());
  if (page.sources().alert_faults) faults.add({{"part", "alerts"}}, page.sources().alert_faults());
  page.put(faults);
}

void write_self(MetricsPage& page) {
  page.put(page.gauge("weir_build_info", "Always 1; its labels contain the version and the source's commit.")
               .add({{"commit", page.sources().commit}, {"version", page.sources().version}}, 1.0));
  page.put(page.gauge("weir_build", "Always 1; the earlier form of weir_build_info.")
               .add({{"version", page.sources().version}}, 1.0));
  page.put(page.gauge("weir_workers", "Number of worker threads.").add({}, page.sources().counters.size()));
  std::size_t top_bytes = 0;
  for (const auto* counters : page.sources().counters)
    top_bytes += counters->top ? counters->top->memory() : 0;
  page.put(
      page.gauge("weir_top_memory_bytes", "Bytes of memory used to track top clients.").add({}, top_bytes));
  using Seconds = std::chrono::duration<double>;
  page.put(page.gauge("process_start_time_seconds", "Unix time at which weir started.")
               .add({}, Seconds(page.sources().started.time_since_epoch()).count()));
  const auto figures = page.sources().process ? page.sources().process() : std::nullopt;
  if (!figures) return;
  page.put(page.gauge("process_resident_memory_bytes", "Resident memory.").add({}, figures->resident_bytes));
  page.put(page.gauge("process_open_fds", "Open file descriptors.").add({}, figures->open_descriptors));
  page.put(page.gauge("process_max_fds", "Largest number of open file descriptors.")
               .add({}, figures->most_descriptors));
  page.put(
      page.counter("process_cpu_seconds_total", "CPU time, user and system.").add({}, figures->cpu_seconds));
}

}  // namespace

void write_process_metrics(MetricsPage& page) {
  write_tls(page);
  write_reloads(page);
  write_upgrades(page);
  write_faults(page);
  write_self(page);
}

}  // namespace weir::admin
