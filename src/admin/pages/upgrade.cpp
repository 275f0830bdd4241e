// POST /api/upgrade: starts a new process that takes over, and returns the result.
#include "admin/pages/pages.hpp"

#include "weir/net/use_task.hpp"
#include "weir/observe/json_value.hpp"

#include <chrono>
#include <memory>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

// Shared with the callback of the upgrade, which may run after the request has ended.
struct PendingUpgrade {
  explicit PendingUpgrade(const net::Executor& executor) : timer(executor) {}
  net::Timer timer;
  std::optional<UpgradeOutcome> outcome;
};

Answer answer_of(const UpgradeOutcome& outcome) {
  if (!outcome.fault.empty()) return error_answer(409, "not_upgraded", outcome.fault);
  using Milliseconds = std::chrono::duration<double, std::milli>;
  return {.status = 200,
          .body = observe::json_text(json::object{{"process", outcome.process},
                                                  {"keys", outcome.keys},
                                                  {"changed", outcome.changed},
                                                  {"left_out", outcome.left_out},
                                                  {"paused_ms", Milliseconds(outcome.paused).count()}})};
}

}  // namespace

net::Task<Answer> ask_upgrade(const Sources& sources, const PageRequest& question,
                              const net::Executor& executor) {
  if (!sources.upgrade) co_return error_answer(404, "not_found", "This process cannot be upgraded.");
  const auto pending = std::make_shared<PendingUpgrade>(executor);
  pending->timer.expires_after(sources.longest_upgrade);
  sources.upgrade(question.peer, [pending](const UpgradeOutcome& outcome) {
    pending->outcome = outcome;
    pending->timer.cancel();
  });
  net::ErrorCode ignored;
  if (!pending->outcome) co_await pending->timer.async_wait(net::use_task(ignored));
  if (pending->outcome) co_return answer_of(*pending->outcome);
  co_return error_answer(504, "still_upgrading",
                         "The upgrade is not finished yet; the log will show the result.");
}

}  // namespace weir::admin
