// Which alerts there are, what each has to say, and to whom: what of alerts needs no connection. The instants
// are arguments.
//
// An alert that is removed, or whose settings change while it fires, says to its own webhook that it has
// ended: it leaves, and is here until that has got through or was given up. Belongs to one thread.
#pragma once

#include "weir/admin/alert_settings.hpp"
#include "weir/admin/sources.hpp"
#include "weir/base/time.hpp"
#include "weir/net/name_lookup.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/observe/delivery.hpp"
#include "weir/observe/surge.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace weir::admin {

struct Alert {
  AlertSettings settings;
  net::TlsContext tls;  // null where the webhook speaks none
  observe::Surge surge;
  observe::Delivery delivery;
  std::shared_ptr<AlertFigures> figures;  // shared by those that have had its name, one after another
  // The addresses of the webhook's host.
  std::unique_ptr<net::NameLookup> lookup = std::make_unique<net::NameLookup>();
};

class AlertBook {
 public:
  // Shared with an attempt to post that outlives a change.
  using Alerts = std::vector<std::shared_ptr<Alert>>;

  // `say` takes lines for the log. `version`: of weir, for the messages.
  AlertBook(std::string version, std::function<void(const std::string&)> say);

  // Throws where a webhook's `ca` cannot be read.
  [[nodiscard]] static std::shared_ptr<Alert> make(AlertSettings settings);

  // Goes on with others: one whose settings stay the same goes on as it is. Throws as make() does, and then
  // nothing has changed.
  void change(std::vector<AlertSettings> settings, base::TimePoint now);

  // Reads the files again that say whom webhooks believe, for messages from now on; a faulty one is left as
  // it was read before.
  void read_authorities();

  // Of each alert, as AlertStanding::voice.
  [[nodiscard]] std::vector<std::string> voices() const;
  // Ends with all: another process goes on with those of `voices`, which says what is still to be said of
  // them. What it has to know: of those that fire, or have not told yet how they stand. The others are gone.
  [[nodiscard]] std::vector<AlertStanding> retire(const std::vector<std::string>& voices,
                                                  base::TimePoint now);
  // Goes on with what another process has retired from.
  void go_on(const std::vector<AlertStanding>& standings, base::TimePoint now);

  // Once a second: what has happened since, and what is to be said of it.
  void look(const Sources& sources, base::TimePoint now);

  // Whoever may have something to say, those that leave first; who has said its last is forgotten.
  [[nodiscard]] Alerts speakers();

  [[nodiscard]] std::vector<AlertFigures> figures() const;

 private:
  void leave(const std::shared_ptr<Alert>& alert, base::TimePoint now);
  void tell(Alert& alert, observe::Surge::Change change, base::TimePoint now);
  [[nodiscard]] std::string message(const Alert& alert, observe::Surge::Change change,
                                    base::TimePoint now) const;

  const std::string version_;
  const std::string host_;
  std::function<void(const std::string&)> say_;
  Alerts alerts_;  // in the configuration's order
  Alerts leaving_;
};

}  // namespace weir::admin
