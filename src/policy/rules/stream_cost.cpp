#include "weir/policy/stream_cost.hpp"

#include "policy/rules/cost_terms.hpp"

#include <utility>
#include <vector>

namespace weir::policy {

class StreamCost::Impl {
 public:
  Impl(const Settlement& settlement, http::StreamFormat format)
      : settlement_(settlement),
        decoder_(format),
        numbers_(pointers_of(settlement.terms).size()),
        reader_(pointers_of(settlement.terms)) {}

  void read(std::string_view piece) {
    using Status = http::RecordDecoder::Status;
    for (;;) {
      const auto part = decoder_.next(piece);
      piece.remove_prefix(part.used);
      if (part.status == Status::NeedMore) return;
      if (part.status == Status::Data) {
        reader_.read(part.data);
        is_empty_ = false;
      }
      if (part.status == Status::End) end_record();
    }
  }

  ReportedCost finish() {
    end_record();
    return sum_of_terms(settlement_.terms, settlement_.scale, numbers_);
  }

  [[nodiscard]] std::size_t memory() const noexcept {
    return sizeof *this + memory_of(numbers_) + reader_.memory();
  }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  // Handles the end of a record. Ignores an empty record, which is not JSON. A server may send many empty
  // records, so they must cost little time.
  void end_record() {
    if (std::exchange(is_empty_, true)) return;
    auto found = reader_.finish();
    if (found.fault != JsonFault::None) return;
    ++records_;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      auto& number = found.numbers[i];
      if (is_present(number)) numbers_[i] = std::move(number);
    }
  }

  const Settlement& settlement_;
  http::RecordDecoder decoder_;
  std::vector<JsonNumber> numbers_;  // the last value under each pointer
  JsonNumberReader reader_;
  std::uint64_t records_ = 0;
  bool is_empty_ = true;  // the present record has no octets so far
};

StreamCost::StreamCost(const Settlement& settlement, http::StreamFormat format)
    : impl_(std::make_unique<Impl>(settlement, format)) {}
StreamCost::StreamCost(StreamCost&&) noexcept = default;
StreamCost& StreamCost::operator=(StreamCost&&) noexcept = default;
StreamCost::~StreamCost() = default;

void StreamCost::read(std::string_view piece) {
  impl_->read(piece);
}

ReportedCost StreamCost::finish() {
  return impl_->finish();
}

std::size_t StreamCost::memory() const noexcept {
  return impl_->memory();
}

std::uint64_t StreamCost::records() const noexcept {
  return impl_->records();
}

}  // namespace weir::policy
