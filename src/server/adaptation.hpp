// Sets the factors (the granted shares of the limits) of rules with `adapt` (weir/limit/adapt.hpp). Once a
// period, adds up the answers of each upstream over all workers, and computes the next factor of each rule.
//
// Program owns the object, which belongs to the main thread.
#pragma once

#include "weir/limit/adapt.hpp"
#include "weir/log/log.hpp"
#include "weir/net/asio.hpp"
#include "weir/proxy/configuration.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace weir::server {

class Adaptation {
 public:
  // Returns the sum of an upstream's answers so far, over all workers. `upstream`: the index of its counters.
  using AnswersSoFar = std::function<limit::UpstreamAnswers(std::size_t upstream)>;

  // `factors` and `log` must outlive this object.
  Adaptation(net::Executor executor, limit::Factors& factors, AnswersSoFar answers_so_far, log::Log& log);

  // Adapts the rules of this configuration from now on. A rule with the same name and the same `adapt`
  // settings as before keeps its factor. Every other rule starts with its whole limit. Must be called before
  // requests use the configuration.
  void watch(const proxy::Configuration& config);

  // Ends a period: computes the factors of the next period. The timer calls end_period().
  void end_period();

 private:
  struct Watched {
    std::string name;
    limit::RuleIndex index;
    policy::Adapt adapt;
    std::size_t upstream;             // index of the upstream's counters
    limit::UpstreamAnswers before{};  // all answers until the period began
  };
  void arm();
  void log_factor(const Watched& rule, const limit::UpstreamAnswers& answers, limit::Factor before,
                  limit::Factor now);

  net::Timer timer_;
  limit::Factors& factors_;
  const AnswersSoFar answers_so_far_;
  log::Log& log_;
  std::vector<Watched> rules_;
  bool is_armed_ = false;
};

}  // namespace weir::server
