#include "weir/server/reload.hpp"

#include "weir/config/differences.hpp"
#include "weir/config/locations.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::server {

FreshConfiguration read_configuration(const std::string& file, const config::Settings& in_force) {
  FreshConfiguration fresh;
  try {
    auto settings = config::load_settings(file);
    auto found = config::look_up_servers(settings);
    fresh.mistakes = std::move(found.mistakes);
    fresh.servers = std::move(found.servers);
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

Reloading::Reloading(net::asio::io_context& control, std::string file, const config::Settings& in_force,
                     std::function<ReloadReport(FreshConfiguration)> apply)
    : control_(control), file_(std::move(file)), in_force_(in_force), apply_(std::move(apply)) {}

Reloading::~Reloading() {
  if (reader_.joinable()) reader_.join();
}

void Reloading::ask(Done done) {
  if (reader_.joinable()) {
    asked_again_ = true;
    next_.push_back(std::move(done));
    return;
  }
  waiting_.push_back(std::move(done));
  begin();
}

void Reloading::begin() {
  try {
    reader_ = std::thread([this] {
      net::asio::post(control_, [this, fresh = std::make_shared<FreshConfiguration>(read_configuration(
                                           file_, in_force_))] { end(std::move(*fresh)); });
    });
  } catch (const std::system_error& error) {
    finish({.mistakes = {file_ + ": cannot start a thread to read it: " + error.what()},
            .changes = {},
            .warnings = {}});
  }
}

void Reloading::end(FreshConfiguration fresh) {
  reader_.join();
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
  if (!std::exchange(asked_again_, false)) return;
  waiting_ = std::exchange(next_, {});
  begin();
}

}  // namespace weir::server
