// The open permits of one worker: the questions whose charges may still be settled or refunded. A permit ends
// when its asker settles it. It also ends when its time has passed, and the charges then remain unchanged.
// Only the worker's thread uses the object; other workers use PermitOwners.
#pragma once

#include "proxy/ask/question_exchange.hpp"

#include "weir/ask/settle_request.hpp"
#include "weir/base/time.hpp"
#include "weir/net/watchdog.hpp"
#include "weir/observe/ask_tallies.hpp"
#include "weir/proxy/ask_settings.hpp"
#include "weir/proxy/permit_count.hpp"
#include "weir/proxy/permit_owners.hpp"
#include "weir/proxy/worker.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weir::proxy {

class Permits final : private net::Watched {
 public:
  // `owners`: null if there is only this worker. `worker` and `owners` must outlive the object.
  Permits(Worker& worker, PermitOwners* owners);
  ~Permits();
  Permits(const Permits&) = delete;
  Permits& operator=(const Permits&) = delete;

  // Keeps a question until it is settled, but at most for the listener's permit_ttl. Returns the name of the
  // permit, which nobody can guess. `reservation`: counts the permit. `listener`: the listener on which the
  // question came.
  [[nodiscard]] std::string add(std::unique_ptr<QuestionExchange> question,
                                PermitCount::Reservation reservation,
                                std::shared_ptr<const AskSettings> listener);

  enum class Result : std::uint8_t {
    Settled,
    Unknown,      // there is no such permit, or it has ended, or its asker uses another listener
    BadHeaders,   // the headers of the server's answer are invalid; the permit remains open
    Unreachable,  // the worker of the permit has not answered
  };
  // Settles a permit of this worker, and ends it. `listener`: the listener on which the settlement came. The
  // question must have come on the same listener, or on a listener with the same token.
  [[nodiscard]] Result settle(const ask::SettleRequest& request, const AskSettings& listener);

  // Refunds the charges of a permit of this worker, and ends it, because the asker has not received the
  // permit's name. Does nothing if there is no such permit.
  void withdraw(const std::string& permit) noexcept;

  // Returns the number of the worker in the permit's name. Returns nullopt if the name is invalid.
  [[nodiscard]] static std::optional<unsigned> owner_of(std::string_view permit) noexcept;
  [[nodiscard]] unsigned number() const noexcept { return number_; }
  [[nodiscard]] PermitOwners* owners() const noexcept { return owners_; }

 private:
  using Deadlines = std::multimap<base::TimePoint, std::string>;  // the value is a permit's name
  struct Permit {
    std::unique_ptr<QuestionExchange> question;
    PermitCount::Reservation reservation;
    std::shared_ptr<const AskSettings> listener;  // shared, because a reload may replace the settings
    Deadlines::iterator deadline;
  };
  using Open = std::unordered_map<std::string, Permit>;

  void on_late() noexcept override {}
  void on_tick() noexcept override;
  void end(Open::iterator permit, observe::PermitEnd how) noexcept;

  Worker& worker_;
  PermitOwners* const owners_;
  const unsigned number_;
  Deadlines deadlines_;
  Open open_;
};

}  // namespace weir::proxy
