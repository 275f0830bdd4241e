#include "weir/net/service_lookup.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include <ares.h>

namespace weir::net {

namespace {

// Reads a DNS message (RFC 1035 §4.1) from the front. After a read beyond the end, fails() is true.
class MessageReader {
 public:
  explicit MessageReader(std::span<const unsigned char> message) : message_(message) {}

  [[nodiscard]] bool fails() const noexcept { return fails_; }
  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  void move_to(std::size_t at) noexcept {
    fails_ = fails_ || at > message_.size();
    at_ = fails_ ? message_.size() : at;
  }
  std::uint16_t number16() noexcept {
    const auto at = at_;
    move_to(at + 2);
    if (fails_) return 0;
    return static_cast<std::uint16_t>(message_[at] << 8U | message_[at + 1]);
  }
  std::uint32_t number32() noexcept {
    const std::uint32_t high = number16();
    return high << 16U | number16();
  }
  // Reads a name, which may be compressed. Returns it in lower case, without the final dot.
  std::string name() {
    char* text = nullptr;
    long length = 0;
    if (fails_ || at_ >= message_.size() ||
        ares_expand_name(&message_[at_], message_.data(), static_cast<int>(message_.size()), &text,
                         &length) != ARES_SUCCESS) {
      fails_ = true;
      return {};
    }
    std::string name(text);
    ares_free_string(text);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; });
    move_to(at_ + static_cast<std::size_t>(length));
    return name;
  }

 private:
  const std::span<const unsigned char> message_;
  std::size_t at_ = 0;
  bool fails_ = false;
};

constexpr std::uint16_t kSrvType = 33, kInternetClass = 1;

// Reads one record. Lowers `ttl` to the TTL of the record. Adds the record to `found` if it is an SRV record
// with a target.
void read_record(MessageReader& reader, std::vector<ServiceRecord>& found, std::uint32_t& ttl) {
  (void)reader.name();
  const auto type = reader.number16();
  const auto kind = reader.number16();
  ttl = std::min(ttl, reader.number32());
  const std::size_t length = reader.number16();
  const auto end = reader.position() + length;
  if (type == kSrvType && kind == kInternetClass) {
    ServiceRecord record;
    record.priority = reader.number16();
    record.weight = reader.number16();
    record.target.port = reader.number16();
    record.target.host = reader.name();
    if (!record.target.host.empty() && record.target.port != 0) found.push_back(std::move(record));
  }
  reader.move_to(end);
}

}  // namespace

std::optional<ServiceRecords> parse_service_records(std::span<const unsigned char> message) {
  constexpr std::size_t kCounts = 4;  // position of the counts of questions and answers
  MessageReader reader(message);
  reader.move_to(kCounts);
  const auto questions = reader.number16();
  const auto answers = reader.number16();
  reader.move_to(reader.position() + 4);  // skips the counts of further records
  for (int i = 0; i < questions && !reader.fails(); ++i) {
    (void)reader.name();
    (void)reader.number32();
  }
  ServiceRecords found;
  auto ttl = std::numeric_limits<std::uint32_t>::max();
  for (int i = 0; i < answers && !reader.fails(); ++i) read_record(reader, found.records, ttl);
  if (reader.fails()) return std::nullopt;
  // RFC 2181 §8: a TTL above 2^31 counts as 0.
  found.ttl = std::chrono::seconds(ttl > std::numeric_limits<std::int32_t>::max() ? 0 : ttl);
  return found;
}

}  // namespace weir::net
