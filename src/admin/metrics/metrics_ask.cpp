// The metrics of questions and permits.
#include "admin/metrics/metrics_page.hpp"

namespace weir::admin {

using observe::Counters;

namespace {

void write_questions(MetricsPage& page) {
  Family questions =
      page.counter("weir_decide_questions_total", "Questions of askers, by the way they came and result.");
  for (std::size_t api = 0; api < observe::kAskApiNames.size(); ++api)
    for (std::size_t result = 0; result < observe::kAskResultNames.size(); ++result)
      questions.add(
          {{"api", std::string(observe::kAskApiNames[api])},
           {"result", std::string(observe::kAskResultNames[result])}},
          page.sum([&](const Counters& c) {
            return c.ask.questions(static_cast<observe::AskApi>(api), static_cast<observe::AskResult>(result))
                .value();
          }));
  page.put(questions);
  Family denied = page.counter("weir_decide_denied_total", "Calls of askers without the listener's token.");
  denied.add({}, page.sum([](const Counters& c) { return c.ask.denied.value(); }));
  page.put(denied);
}

void write_permits(MetricsPage& page) {
  Family open = page.gauge("weir_decide_permits", "Permits of askers that are open.");
  open.add({}, page.sum([](const Counters& c) { return c.ask.permits.value(); }));
  page.put(open);
  Family ended = page.counter("weir_decide_permits_ended_total", "Permits of askers that ended, by how.");
  for (std::size_t end = 0; end < observe::kPermitEndNames.size(); ++end)
    ended.add({{"end", std::string(observe::kPermitEndNames[end])}}, page.sum([&](const Counters& c) {
      return c.ask.permits_ended(static_cast<observe::PermitEnd>(end)).value();
    }));
  page.put(ended);
  Family full = page.counter("weir_decide_permits_full_total",
                             "Questions answered 503 because max_permits permits were open.");
  full.add({}, page.sum([](const Counters& c) { return c.ask.permits_full.value(); }));
  page.put(full);
}

}  // namespace

void write_ask_metrics(MetricsPage& page) {
  write_questions(page);
  HistogramFamily seconds("weir_decide_seconds", "Time of a decision for an asker, with Redis if asked.");
  seconds.add({}, page.sum_of_histograms(
                      [](const Counters& c) -> const observe::Histogram& { return c.ask.seconds; }));
  page.put(seconds);
  write_permits(page);
}

}  // namespace weir::admin
