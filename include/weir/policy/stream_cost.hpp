// Reads the cost that a streamed response reports in its records (http/event_stream.hpp).
//
// Providers of language models report the used tokens in one or several events, often in the last events. For
// each JSON pointer, the last value counts. Records that are not JSON, such as "[DONE]", are ignored.
#pragma once

#include "weir/http/event_stream.hpp"
#include "weir/policy/settlement.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace weir::policy {

// Reads one streamed response. Its memory is bounded, however long the stream or a record is: 48 KiB, and 12
// KiB for each pointer of the settlement. A stream of a language model needs 1 to 8 KiB.
class StreamCost {
 public:
  // `settlement` must outlive the object. REQUIRES: its kind is Json.
  StreamCost(const Settlement& settlement, http::StreamFormat format);
  StreamCost(StreamCost&&) noexcept;
  StreamCost& operator=(StreamCost&&) noexcept;
  ~StreamCost();

  // Reads the next piece of the body. The result does not depend on where the body is divided.
  void read(std::string_view piece);
  // Ends the stream, and returns the amount that its records report.
  [[nodiscard]] ReportedCost finish();
  // Returns the memory that the object uses now, in bytes.
  [[nodiscard]] std::size_t memory() const noexcept;
  // Returns the number of complete records that were JSON.
  [[nodiscard]] std::uint64_t records() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::policy
