// A value, or why there is none. An alias, so that a later standard's `expected` can take its place in one
// line.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <boost/system/result.hpp>

namespace weir::base {

// An error in words a person can act on: what was found, what was expected.
struct Error {
  std::string message;
};

// Called when somebody takes the value of a Result that holds an Error without having looked.
[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::logic_error(error.message);
}

template <class T, class E = Error>
using Result = boost::system::result<T, E>;

}  // namespace weir::base
