#include "server/process/keys_file_edit.hpp"
#include "server/program.hpp"

#include "weir/config/config_errors.hpp"

#include <memory>
#include <new>
#include <utility>

namespace weir::server {

namespace {

admin::ApiKeyResponse refusal(unsigned status, std::string code, std::string why) {
  return {.status = status, .code = std::move(code), .error = std::move(why)};
}

admin::ApiKeyResponse refusal(const config::EditedKeys& edited) {
  using enum config::KeyEditFault;
  switch (edited.fault) {
    case Unknown:
      return refusal(404, "unknown_key", edited.why);
    case Mistakes:
    case OtherForm:
      return refusal(409, "keys_file_refused", edited.why);
    case Busy:
      return refusal(503, "busy", edited.why);
    default:
      return refusal(500, "keys_file_failed", edited.why);
  }
}

// Returns the owner of a key for the log, such as ` of user "ann", tier "pro"`.
std::string owner_in_words(const policy::ApiKeyOwner& owner) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    text += (text.empty() ? " of " : ", ") + std::string(name) + " " + config::in_quotes(value);
  };
  add("user", owner.user);
  add("org", owner.org);
  add("tier", owner.tier);
  add("service", owner.service);
  return text.empty() ? " of nobody" : text;
}

}  // namespace

// Refuses a change during a reload or an upgrade. The reload, or the new process, may have read the keys file
// before the change, and would then put the old keys back into use.
void Program::change_api_key(const admin::ApiKeyRequest& request, admin::ApiKeyDone done) {
  // The bound on changes that have not ended. The bound on admin connections does not suffice, because a
  // change continues after its client has left.
  constexpr std::size_t kMostChanges = 64;
  if (stopping_) return done(refusal(503, "busy", "weir is stopping"));
  if (upgrade_.is_under_way()) return done(refusal(503, "busy", "an upgrade is in progress; try again"));
  if (reloading_.is_under_way()) return done(refusal(503, "busy", "a reload is in progress; try again"));
  if (file_thread_.size() >= kMostChanges)
    return done(refusal(503, "busy", std::to_string(kMostChanges) + " other changes wait; try again"));
  const auto edit = std::make_shared<KeysFileEdit>();
  const config::KeyEdit wanted{.digest = request.digest, .id = request.id, .owner = request.owner};
  file_thread_.run([edit, wanted, path = settings_.keys_file] { *edit = edit_keys_file(path, wanted); },
                   [this, edit, request, done = std::move(done)](const std::string& fault) {
                     if (!fault.empty()) edit->edited.fault = config::KeyEditFault::Unwritable;
                     if (!fault.empty())
                       edit->edited.why = settings_.keys_file + " was not changed: " + fault;
                     done(end_change(request, *edit));
                   });
}

// Logs a change of the keys file, and puts the keys into use.
admin::ApiKeyResponse Program::end_change(const admin::ApiKeyRequest& request, const KeysFileEdit& edit) try {
  const auto& edited = edit.edited;
  const auto id = edited.fault == config::KeyEditFault::None ? policy::ApiKeys::id_of(edited.digest)
                  : request.digest                           ? policy::ApiKeys::id_of(*request.digest)
                                                             : request.id;
  const auto what = "admin: " + request.peer + (request.owner ? " sets" : " removes") + " the API key " + id;
  if (edited.fault != config::KeyEditFault::None) {
    log_.audit(what + ": refused: " + edited.why);
    return refusal(edited);
  }
  log_.audit(what + owner_in_words(edited.owner) +
             (!request.owner || !edited.was ? "" : "; until now" + owner_in_words(*edited.was)));
  activate(edited.keys, edit.stamp);
  admin::ApiKeyResponse response{.id = id, .owner = edited.owner, .created = !edited.was};
  if (request.owner)
    if (auto warning = config::warn_of_unused_tier(settings_, edited.owner.tier))
      response.warnings.push_back(std::move(*warning));
  return response;
} catch (const std::bad_alloc&) {
  return refusal(500, "keys_file_failed", "the keys file was changed, but memory ran out; reload weir");
}

// Puts other API keys into use, for requests that begin from now on. All limiters keep their state.
void Program::activate(const policy::ApiKeys& keys, const net::FileStamp& stamp) {
  settings_.client.keys = keys;
  for (auto& file : settings_.files) {
    if (file.path != settings_.keys_file) continue;
    file.stamp = stamp;
    config_watch_.note_replaced(file);
  }
  clean_up();
  const auto config_snapshot = config_snapshots_.activate(config_snapshots_.with_api_keys(keys));
  for (const auto& worker : workers_) worker->begin(config_snapshot);
}

}  // namespace weir::server
