// A question describes a request, or named values (descriptors), about which weir must decide. Plain values,
// whatever the API that carries the question (JSON or gRPC).
#pragma once

#include "weir/base/ip_address.hpp"
#include "weir/base/time.hpp"
#include "weir/limit/rate.hpp"
#include "weir/policy/descriptor.hpp"

#include <cstddef>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::ask {

// The largest number of questions in one call.
inline constexpr std::size_t kMostQuestions = 100;

// Movable, but not copyable, because `descriptors` has views of texts in this object.
struct Question {
  Question() = default;
  Question(Question&&) = default;
  Question& operator=(Question&&) = default;
  ~Question() = default;

  std::string method = "GET";
  std::string host{};                   // empty: the request has no Host field
  std::string target = "/";             // path and query
  std::optional<base::IpAddress> ip{};  // the address of the client; nullopt: that of the asker
  std::vector<std::pair<std::string, std::string>> headers{};
  bool secure = true;                 // true: the client uses https
  std::optional<limit::Cost> cost{};  // nullopt: the cost that each rule has; 0: checks, charges nothing
  std::string domain{};
  std::vector<policy::Descriptor> descriptors{};
  bool wants_permit = false;  // true: the asker will settle or refund the charges later
  base::Duration timeout{0};  // how long the asker waits for the decision; 0: without a bound
  // True: if the request must wait, weir answers only when the wait is over. The wait counts towards
  // `timeout`.
  bool answer_waits = false;

  // Stores a text for `descriptors`. The result is valid as long as this object, even if it is moved.
  [[nodiscard]] std::string_view keep(std::string text) { return texts_.emplace_front(std::move(text)); }

 private:
  std::forward_list<std::string> texts_{};  // a list does not move its elements when it grows or is moved
};

// Returns the head of the request that the question describes, as a client would send it over HTTP/1. Returns
// nullopt if a part of the question contains a line break or a NUL byte.
[[nodiscard]] std::optional<std::string> request_head(const Question& question);

}  // namespace weir::ask
