// POST /api/reload: reads the configuration again and returns the result.
#include "admin/pages/pages.hpp"

#include "weir/net/use_task.hpp"
#include "weir/observe/json_value.hpp"

#include <memory>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

// Shared with the callback of the reload, which may run after the request has ended.
struct PendingReload {
  explicit PendingReload(const net::Executor& executor) : timer(executor) {}
  net::Timer timer;
  std::optional<ReloadOutcome> outcome;
};

json::array lines(const std::vector<std::string>& texts) {
  json::array array;
  for (const auto& text : texts) array.emplace_back(text);
  return array;
}

Answer answer_of(const ReloadOutcome& outcome) {
  if (outcome.mistakes.empty())
    return {.status = 200,
            .body = observe::json_text(
                json::object{{"changes", lines(outcome.changes)}, {"warnings", lines(outcome.warnings)}})};
  return {.status = 422,
          .body = observe::json_text(
              json::object{{"error", "configuration_refused"},
                           {"message", "The reload failed; the running configuration is unchanged."},
                           {"mistakes", lines(outcome.mistakes)}})};
}

}  // namespace

net::Task<Answer> ask_reload(const Sources& sources, const PageRequest& question,
                             const net::Executor& executor) {
  if (!sources.reload) co_return error_answer(404, "not_found", "This process cannot be reloaded.");
  const auto pending = std::make_shared<PendingReload>(executor);
  pending->timer.expires_after(sources.longest_reload);
  sources.reload(question.peer, [pending](const ReloadOutcome& outcome) {
    pending->outcome = outcome;
    pending->timer.cancel();
  });
  net::ErrorCode ignored;
  if (!pending->outcome) co_await pending->timer.async_wait(net::use_task(ignored));
  if (pending->outcome) co_return answer_of(*pending->outcome);
  co_return error_answer(504, "still_reading",
                         "The reload is not finished yet; the log will show the result.");
}

}  // namespace weir::admin
