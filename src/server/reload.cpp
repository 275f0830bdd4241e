#include "weir/server/reload.hpp"

#include "server/process/file_thread.hpp"

#include "weir/config/differences.hpp"
#include "weir/config/locations.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <utility>

namespace weir::server {

FreshConfiguration read_configuration(const std::string& file, const config::Settings& in_force) {
  FreshConfiguration fresh;
  try {
    auto settings = config::load_settings(file);
    auto found = config::look_up_servers(settings);
    fresh.mistakes = std::move(found.mistakes);
    fresh.upstreams = std::move(found.upstreams);
    fresh.unknown = std::move(found.unknown);
    if (!fresh.mistakes.empty()) return fresh;
    fresh.differences = config::differences(describe(in_force), describe(settings));
    auto unshown = unshown_differences(in_force, settings);
    std::move(unshown.begin(), unshown.end(), std::back_inserter(fresh.differences));
    fresh.settings = std::move(settings);
  } catch (const config::ConfigError& error) {
    fresh.mistakes = error.mistakes();
    fresh.files = error.files();
  } catch (const std::exception& error) {
    fresh.mistakes = {file + ": " + error.what()};
  }
  return fresh;
}

Reloading::Reloading(FileThread& thread, std::string file, const config::Settings& in_force,
                     std::function<ReloadReport(FreshConfiguration)> apply)
    : thread_(thread), file_(std::move(file)), in_force_(in_force), apply_(std::move(apply)) {}

void Reloading::ask(Done done) {
  if (reading_) {
    requested_again_ = true;
    next_.push_back(std::move(done));
    return;
  }
  waiting_.push_back(std::move(done));
  begin();
}

// The file thread may still read the configuration when this object is destroyed. So the first function,
// which runs on that thread, must not use `this`.
void Reloading::begin() {
  reading_ = true;
  const auto fresh = std::make_shared<FreshConfiguration>();
  thread_.run([fresh, file = file_, &in_force = in_force_] { *fresh = read_configuration(file, in_force); },
              [this, fresh](const std::string& fault) { end(std::move(*fresh), fault); });
}

void Reloading::end(FreshConfiguration fresh, const std::string& fault) {
  reading_ = false;
  if (!fault.empty()) fresh.mistakes = {file_ + ": " + fault};
  ReloadReport report;
  try {
    report = apply_(std::move(fresh));
  } catch (const std::exception& error) {
    // Memory has run out. weir continues nevertheless, because ending would close all connections.
    report.mistakes = {file_ + ": applied only in part: " + error.what() + "; reload again"};
  }
  finish(report);
}

void Reloading::finish(const ReloadReport& report) {
  last_succeeded_ = report.ok();
  ++(report.ok() ? succeeded_ : failed_);
  if (report.ok()) since_ = std::chrono::system_clock::now();
  for (const auto& done : std::exchange(waiting_, {}))
    if (done) done(report);
  if (!std::exchange(requested_again_, false)) return;
  waiting_ = std::exchange(next_, {});
  begin();
}

}  // namespace weir::server
