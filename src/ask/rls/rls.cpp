#include "weir/ask/rls.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

namespace weir::ask {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::pbf_writer;

// Field numbers, named by message and field: kEntryKey is `key` of an Entry.
using Tag = protozero::pbf_tag_type;
constexpr Tag kRequestDomain = 1, kRequestDescriptors = 2, kRequestHitsAddend = 3;
constexpr Tag kDescriptorEntries = 1, kDescriptorHitsAddend = 3, kDescriptorNegativeHits = 4;
constexpr Tag kEntryKey = 1, kEntryValue = 2;
constexpr Tag kUInt64Value = 1;
constexpr Tag kResponseOverallCode = 1, kResponseStatuses = 2, kResponseHeadersToAdd = 3,
              kResponseRawBody = 5;
constexpr Tag kStatusCode = 1, kStatusCurrentLimit = 2, kStatusLimitRemaining = 3,
              kStatusDurationUntilReset = 4;
constexpr Tag kLimitRequestsPerUnit = 1, kLimitUnit = 2, kLimitName = 3;
constexpr Tag kDurationSeconds = 1, kDurationNanos = 2;
constexpr Tag kHeaderKey = 1, kHeaderValue = 2;

constexpr std::int32_t kOk = 1, kOverLimit = 2;  // RateLimitResponse.Code

// Returns true if the reader is at this field, and the field has this wire type.
bool is_at(const pbf_reader& reader, Tag tag, pbf_wire_type type) noexcept {
  return reader.tag() == tag && reader.wire_type() == type;
}

std::string_view text_at(pbf_reader& reader) {
  const auto view = reader.get_view();
  return {view.data(), view.size()};
}

pbf_reader reader_of(std::string_view text) {
  return {text.data(), text.size()};
}

policy::DescriptorEntry read_entry(std::string_view text) {
  policy::DescriptorEntry entry;
  auto reader = reader_of(text);
  while (reader.next()) {
    if (is_at(reader, kEntryKey, pbf_wire_type::length_delimited))
      entry.key = text_at(reader);
    else if (is_at(reader, kEntryValue, pbf_wire_type::length_delimited))
      entry.value = text_at(reader);
    else
      reader.skip();
  }
  return entry;
}

// Returns the value of a UInt64Value; `number` if it has no value. `number`: the value of an earlier copy of
// the same field, because Protobuf merges all copies into one.
std::uint64_t read_number(std::string_view text, std::uint64_t number) {
  auto reader = reader_of(text);
  while (reader.next()) {
    if (is_at(reader, kUInt64Value, pbf_wire_type::varint))
      number = reader.get_uint64();
    else
      reader.skip();
  }
  return number;
}

// Returns what is wrong with the descriptor; empty: nothing.
std::string_view read_descriptor(std::string_view text, policy::Descriptor& descriptor) {
  descriptor.exact = true;
  auto reader = reader_of(text);
  while (reader.next()) {
    if (is_at(reader, kDescriptorEntries, pbf_wire_type::length_delimited)) {
      if (descriptor.entries.size() == policy::kMostEntries) return "a descriptor has more than 64 entries";
      descriptor.entries.push_back(read_entry(text_at(reader)));
      if (descriptor.entries.back().key.empty()) return "an entry of a descriptor has no key";
    } else if (is_at(reader, kDescriptorHitsAddend, pbf_wire_type::length_delimited)) {
      const auto hits = read_number(text_at(reader), descriptor.cost.value_or(0));
      if (hits > limit::kMaxCost) return "hits_addend of a descriptor must be at most 2147483648";
      descriptor.cost = hits;
    } else if (is_at(reader, kDescriptorNegativeHits, pbf_wire_type::varint)) {
      if (reader.get_uint64() != 0) return "weir does not take negative hits back";
    } else {
      reader.skip();
    }
  }
  if (descriptor.entries.empty()) return "a descriptor has no entries";
  return {};
}

// Returns what is wrong with the message; empty: nothing.
std::string_view read_call(std::string_view message, RlsCall& call) {
  auto reader = reader_of(message);
  while (reader.next()) {
    if (is_at(reader, kRequestDomain, pbf_wire_type::length_delimited)) {
      call.domain = text_at(reader);
    } else if (is_at(reader, kRequestDescriptors, pbf_wire_type::length_delimited)) {
      if (call.descriptors.size() == kMostDescriptors) return "the call has more than 32 descriptors";
      const auto fault = read_descriptor(text_at(reader), call.descriptors.emplace_back());
      if (!fault.empty()) return fault;
    } else if (is_at(reader, kRequestHitsAddend, pbf_wire_type::varint)) {
      const auto hits = reader.get_uint32();
      if (hits > limit::kMaxCost) return "hits_addend must be at most 2147483648";
      call.hits.reset();  // replaces an earlier value; 0 means that the call states no cost
      if (hits != 0) call.hits = hits;
    } else {
      reader.skip();
    }
  }
  if (call.domain.empty()) return "the call has no domain";
  return call.descriptors.empty() ? "the call has no descriptors" : std::string_view();
}

std::uint32_t bounded(std::uint64_t number) noexcept {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(number, std::numeric_limits<std::uint32_t>::max()));
}

// Returns the value of RateLimit.Unit for a period; 0 if the period is none of the units.
std::int32_t unit_of(base::Duration period) noexcept {
  using namespace std::chrono;
  constexpr seconds kUnits[] = {seconds{0}, seconds{1}, minutes{1}, hours{1},
                                days{1},    days{30},   days{365},  weeks{1}};
  for (std::int32_t unit = 1; unit < static_cast<std::int32_t>(std::size(kUnits)); ++unit)
    if (kUnits[unit] == period) return unit;
  return 0;
}

void append_status(pbf_writer& out, const RlsStatus& status) {
  pbf_writer of_status(out, kResponseStatuses);
  of_status.add_enum(kStatusCode, status.over_limit ? kOverLimit : kOk);
  if (!status.limit) return;
  const auto& limit = *status.limit;
  {
    pbf_writer of_limit(of_status, kStatusCurrentLimit);
    of_limit.add_uint32(kLimitRequestsPerUnit, bounded(limit.units));
    of_limit.add_enum(kLimitUnit, unit_of(limit.period));
    of_limit.add_string(kLimitName, limit.rule.data(), limit.rule.size());
  }
  of_status.add_uint32(kStatusLimitRemaining, bounded(limit.remaining));
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(limit.reset_after);
  const auto rest = std::chrono::nanoseconds(limit.reset_after - whole);
  pbf_writer of_reset(of_status, kStatusDurationUntilReset);
  of_reset.add_int64(kDurationSeconds, whole.count());
  of_reset.add_int32(kDurationNanos, static_cast<std::int32_t>(rest.count()));
}

// Adds each line of `fields` as a HeaderValue.
void append_fields(pbf_writer& out, std::string_view fields) {
  while (!fields.empty()) {
    const auto line = fields.substr(0, fields.find("\r\n"));
    fields.remove_prefix(std::min(line.size() + 2, fields.size()));
    const auto colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    pbf_writer header(out, kResponseHeadersToAdd);
    header.add_string(kHeaderKey, line.data(), colon);
    header.add_string(kHeaderValue, line.data() + colon + 2, line.size() - colon - 2);
  }
}

}  // namespace

base::Result<RlsCall> read_rls_call(std::string_view message) {
  RlsCall call;
  try {
    const auto fault = read_call(message, call);
    if (!fault.empty()) return base::Error{std::string(fault)};
  } catch (const protozero::exception&) {
    return base::Error{"the message is no valid RateLimitRequest"};
  }
  return call;
}

void append_rls_answer(std::string& out, const RlsAnswer& answer) {
  pbf_writer writer(out);
  writer.add_enum(kResponseOverallCode, answer.over_limit ? kOverLimit : kOk);
  for (const auto& status : answer.statuses) append_status(writer, status);
  append_fields(writer, answer.fields);
  if (!answer.body.empty()) writer.add_bytes(kResponseRawBody, answer.body.data(), answer.body.size());
}

}  // namespace weir::ask
