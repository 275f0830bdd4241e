#include "server/process/heartbeat.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace weir::server {

Heartbeat::Heartbeat(net::Executor control, std::function<void()> alive)
    : control_(control), alive_(std::move(alive)), timer_(control) {}

void Heartbeat::start(std::vector<net::Executor> loops, base::Duration every) {
  loops_ = std::move(loops);
  every_ = every;
  beat();
}

void Heartbeat::stop_watching_workers() {
  loops_.clear();
  awaited_ = 0;
}

void Heartbeat::stop() {
  stopped_ = true;
  timer_.cancel();
}

void Heartbeat::beat() {
  if (stopped_) return;
  if (awaited_ == 0) begin_round();
  timer_.expires_after(every_);
  timer_.async_wait([this](const net::ErrorCode& error) {
    if (!error) beat();
  });
}

void Heartbeat::begin_round() {
  ++round_;
  awaited_ = loops_.size();
  if (awaited_ == 0) return alive_();
  for (const auto& loop : loops_)
    net::asio::post(loop, [this, control = control_, round = round_] {
      net::asio::post(control, [this, round] { answered(round); });
    });
}

void Heartbeat::answered(std::size_t round) {
  if (!stopped_ && round == round_ && awaited_ > 0 && --awaited_ == 0) alive_();
}

}  // namespace weir::server
