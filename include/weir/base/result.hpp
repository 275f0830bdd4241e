// The return type of functions that can fail: a value or an Error. `Result` is an alias for boost's type;
// changing this one line will replace that type by std::expected.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <boost/system/result.hpp>

namespace weir::base {

// An error message for people. It says what was found and what was expected.
struct Error {
  std::string message;
};

// Throws std::logic_error. Boost calls this function if code takes the value of a Result that holds an Error.
[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw std::logic_error(error.message);
}

template <class T, class E = Error>
using Result = boost::system::result<T, E>;

}  // namespace weir::base
