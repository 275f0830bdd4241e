// Detects clients that a rule refuses more often than an alert allows: a Surge for each client. Plain values,
// with the time as an argument.
//
// Memory is bounded: at most kWatched clients are watched, each in about 2 KiB. If kWatched clients are
// watched, a new client replaces the client with the fewest refusals, as in Space-Saving (space_saving.hpp).
// A client whose surge fires is never replaced. A client's refusals are counted from zero when weir begins to
// watch the client, so the count is never too high. The count is too low if the client was replaced and came
// again, or if it came when the surges of all watched clients were firing. A new client also inherits the
// count of the client that it replaces. The inherited count only decides which client is replaced next.
#pragma once

#include "weir/base/siphash.hpp"
#include "weir/base/time.hpp"
#include "weir/observe/surge.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::observe {

// A client of a rule, as logs and admin pages name it.
struct NamedClient {
  base::Digest128 digest;
  std::string text;  // the values of the client's key that are not secret (policy::write_client)
  friend bool operator==(const NamedClient&, const NamedClient&) = default;
};

class ClientSurges {
 public:
  static constexpr std::size_t kWatched = 256;

  struct Client {
    NamedClient name;
    Surge surge;
    std::uint64_t total = 0;  // refusals since ClientSurges began to watch the client
    std::uint64_t fresh = 0;  // refusals since the last update()
    // refusals of the client that this one replaced; decides only which client is replaced next
    std::uint64_t inherited = 0;
    bool reported = false;  // true: update() has reported the beginning of the surge, but not its end
  };
  struct Event {
    Client client;
    Surge::Change change;
  };
  // How many clients were not watched or not reported, because there was no room.
  struct Dropped {
    std::uint64_t replaced = 0;  // clients that were replaced, or that came when no client could be replaced
    std::uint64_t unreported = 0;  // surges that began when update() had no place to report them
  };

  explicit ClientSurges(const Surge::Settings& settings) noexcept : settings_(settings) {}

  // Adds `refusals` refusals of a client. `text`: see NamedClient::text.
  void add(const base::Digest128& client, std::string_view text, std::uint64_t refusals);
  // Returns the surges that have begun, continue or ended. Reports at most `places` beginnings. A later call
  // reports the other beginnings, if these surges still fire. Must be called once a second. REQUIRES: `now`
  // does not decrease.
  [[nodiscard]] std::vector<Event> update(base::TimePoint now, std::size_t places);

  // Continues a surge that the previous process has reported for a client; see Surge::go_on().
  void go_on(const NamedClient& client, base::TimePoint since, std::uint64_t seen, base::TimePoint now);

  // Returns the watched clients, in any order.
  [[nodiscard]] const std::vector<Client>& clients() const noexcept { return clients_; }
  // Returns how many clients were dropped since the last call.
  [[nodiscard]] Dropped take_dropped() noexcept;

 private:
  [[nodiscard]] Client* find(const base::Digest128& client) noexcept;
  [[nodiscard]] Client* replace_client();

  Surge::Settings settings_;
  base::TimePoint updated_{};  // when update() was last called
  std::vector<Client> clients_;
  Dropped dropped_;
};

}  // namespace weir::observe
