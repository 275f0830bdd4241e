// Metrics of alerts and their posts.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

void tell_alerts(MetricsPage& page) {
  if (!page.sources().alerts) return;
  Family firing = page.gauge("weir_alert_firing", "Whether an alert fires.");
  Family changes = page.counter("weir_alerts_total", "Times that an alert began, and was over.");
  Family posts = page.counter("weir_alert_posts_total", "Messages that webhooks took.");
  Family retried = page.counter("weir_alert_posts_retried_total",
                                "Attempts to post that failed and were to be made again.");
  Family failed = page.counter("weir_alert_posts_failed_total",
                               "Messages that all attempts failed of, or that were given up.");
  Family superseded = page.counter("weir_alert_posts_superseded_total",
                                   "Messages not posted because there was a newer one of their alert.");
  for (const AlertFigures& each : page.sources().alerts()) {
    const Labels labels{{"alert", each.name}};
    firing.add(labels, each.firing ? 1.0 : 0.0);
    changes.add({{"alert", each.name}, {"state", "firing"}}, each.fired);
    changes.add({{"alert", each.name}, {"state", "ended"}}, each.ended);
    posts.add(labels, each.posted);
    retried.add(labels, each.retried);
    failed.add(labels, each.failed);
    superseded.add(labels, each.superseded);
  }
  for (const Family* family : {&firing, &changes, &posts, &retried, &failed, &superseded}) page.put(*family);
}

}  // namespace weir::admin
