// Metrics of alerts and their posts.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

void write_alerts_metrics(MetricsPage& page) {
  if (!page.sources().alerts) return;
  Family firing = page.gauge("weir_alert_firing",
                             "1 if the alert is firing, else 0. For an alert on each client: the number of "
                             "clients for which it is firing.");
  Family changes = page.counter("weir_alerts_total", "Alerts that started or ended, by event.");
  Family posts = page.counter("weir_alert_posts_total", "Messages delivered to webhooks.");
  Family retried =
      page.counter("weir_alert_posts_retried_total", "Failed attempts to post that weir retries.");
  Family failed = page.counter("weir_alert_posts_failed_total", "Messages that could not be delivered.");
  Family superseded =
      page.counter("weir_alert_posts_superseded_total",
                   "Messages replaced by a newer one of the same alert before they were posted.");
  Family dropped = page.counter("weir_alert_clients_dropped_total",
                                "Clients that an alert on each client had no room for, by reason.");
  for (const AlertFigures& each : page.sources().alerts()) {
    const Labels labels{{"alert", each.name}};
    if (each.per_client) {
      firing.add(labels, static_cast<double>(each.clients));
      dropped.add({{"alert", each.name}, {"why", "watched"}}, each.replaced);
      dropped.add({{"alert", each.name}, {"why", "firing"}}, each.unreported);
    } else {
      firing.add(labels, each.firing ? 1.0 : 0.0);
    }
    changes.add({{"alert", each.name}, {"state", "firing"}}, each.fired);
    changes.add({{"alert", each.name}, {"state", "ended"}}, each.ended);
    posts.add(labels, each.posted);
    retried.add(labels, each.retried);
    failed.add(labels, each.failed);
    superseded.add(labels, each.superseded);
  }
  for (const Family* family : {&firing, &changes, &posts, &retried, &failed, &superseded, &dropped})
    page.put(*family);
}

}  // namespace weir::admin
