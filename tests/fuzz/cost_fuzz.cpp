// Fuzzes costs in JSON bodies of requests and responses. A number that weir reads at a JSON pointer must be
// the number that Boost.JSON reads there. weir must find a plain number at any depth.
#include "fuzz/input.hpp"

#include "weir/policy/cost.hpp"
#include "weir/policy/settlement.hpp"
#include "weir/policy/stream_cost.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <boost/json.hpp>

namespace weir::fuzz {
namespace {

namespace json = boost::json;
using policy::CostSource;
using policy::ReportedCost;
using policy::Settlement;

constexpr limit::Cost kOtherwise = 7;
constexpr std::size_t kDeeper = policy::kDeepestJson + 1;

std::optional<limit::Cost> cost_of(const std::string& pointer, std::string_view body, std::uint32_t scale) {
  return policy::cost_in_body({CostSource::Kind::Json, pointer, scale}, body, kOtherwise);
}

Settlement settled_by(const std::string& pointer) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::Json;
  settlement.terms = {{.pointers = {pointer}}};
  return settlement;
}

ReportedCost reported_by(const std::string& pointer, std::string_view body) {
  return policy::reported_cost_in_body(settled_by(pointer), body);
}

// Reads the body as a stream, whole and in pieces of every size from 1 to 8.
void read_stream(const std::string& pointer, std::string_view body, http::StreamFormat format) {
  const auto settlement = settled_by(pointer);
  policy::StreamCost whole(settlement, format);
  whole.read(body);
  const auto records = whole.records();
  const auto reported = whole.finish();
  for (std::size_t size = 1; size <= 8; ++size) {
    policy::StreamCost divided(settlement, format);
    for (std::size_t at = 0; at < body.size(); at += size) divided.read(body.substr(at, size));
    require(divided.records() == records, "the number of records does not depend on the pieces");
    const auto again = divided.finish();
    require(again.state == reported.state && again.amount == reported.amount,
            "the cost of a stream does not depend on the pieces");
  }
}

// Compares only whole numbers, because fractions may differ by rounding.
void compare(const json::value& document, const std::string& pointer, std::string_view body) {
  json::error_code ec;
  const auto* there = document.find_pointer(json::string_view(pointer.data(), pointer.size()), ec);
  const auto cost = cost_of(pointer, body, 0);
  const auto reported = reported_by(pointer, body);
  if (there == nullptr) {
    require(!cost || *cost == kOtherwise, "where nothing stands, no cost is read");
    require(reported.state != ReportedCost::State::Amount, "where nothing stands, no amount is read");
    return;
  }
  if (there->is_null())
    return require(!cost && reported.state != ReportedCost::State::Amount, "null is no cost");
  if (there->is_object() || there->is_array() || there->is_bool())
    return require(!cost && reported.state == ReportedCost::State::Unreadable,
                   "what is no number is no cost");
  if (!there->is_int64() && !there->is_uint64()) return;
  const bool fits = (there->is_uint64() && there->get_uint64() <= limit::kMaxCost) ||
                    (there->is_int64() && there->get_int64() >= 0 &&
                     static_cast<std::uint64_t>(there->get_int64()) <= limit::kMaxCost);
  const std::uint64_t number = fits ? there->to_number<std::uint64_t>() : 0;
  // If a member occurs twice, weir reads no cost from the document. Boost.JSON uses the last of the two
  // members.
  require(!cost || (fits && *cost == number), "a cost is the number that stands there");
  require(reported.state != ReportedCost::State::Amount || !fits || reported.amount == number,
          "an amount is the number that stands there");
}

void read_any(std::string_view body, const std::string& pointer) {
  json::error_code ec;
  json::parse_options options;
  options.max_depth = kDeeper;
  const auto document = json::parse(json::string_view(body.data(), body.size()), ec, {}, options);
  if (!ec) return compare(document, pointer, body);
  require(body.empty() || !cost_of(pointer, body, 0), "what is no JSON has no cost");
  require(reported_by(pointer, body).state != ReportedCost::State::Amount, "what is no JSON tells no amount");
}

void read_plain(Input& in) {
  const auto number = in.between(1, limit::kMaxCost);
  std::string body = std::to_string(number), pointer;
  for (auto depth = in.byte() % 32; depth > 0; --depth) {
    const bool array = in.byte() % 2 == 0;
    body = array ? "[0,\"a\"," + body + "]" : "{\"b\":null,\"a/~\":" + body + ",\"c\":{}}";
    pointer.insert(0, array ? "/2" : "/a~1~0");
  }
  require(cost_of(pointer, body, 0) == number, "a plain number is found");
  const auto reported = reported_by(pointer, body);
  require(reported.state == ReportedCost::State::Amount && reported.amount == number,
          "a plain amount is found");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  const auto end = std::min(input.find('\n'), input.size());
  std::string pointer(input.substr(0, end));
  if (!pointer.empty() && pointer.front() != '/') pointer.insert(0, 1, '/');
  // Inserts '0' after each '~' that does not begin "~0" or "~1". The configuration reader rejects pointers
  // with any other '~'.
  for (auto at = pointer.find('~'); at != std::string::npos; at = pointer.find('~', at + 1))
    if (at + 1 == pointer.size() || (pointer[at + 1] != '0' && pointer[at + 1] != '1'))
      pointer.insert(at + 1, 1, '0');
  const auto body = input.substr(std::min(end + 1, size));
  read_any(body, pointer);
  read_stream(pointer, body, weir::http::StreamFormat::Events);
  read_stream(pointer, body, weir::http::StreamFormat::Lines);
  Input in(bytes, size);
  read_plain(in);
  return 0;
}
