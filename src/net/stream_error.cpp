#include "weir/net/stream_error.hpp"

#include <string>

namespace weir::net {

namespace {

class StreamCategory : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "weir.net"; }
  std::string message(int value) const override {
    return value == static_cast<int>(StreamError::WriteOwed) ? "a previous write is incomplete"
                                                             : "an unknown stream error";
  }
};

}  // namespace

const boost::system::error_category& stream_category() noexcept {
  static const StreamCategory category;
  return category;
}

boost::system::error_code make_error_code(StreamError error) noexcept {
  return {static_cast<int>(error), stream_category()};
}

}  // namespace weir::net
