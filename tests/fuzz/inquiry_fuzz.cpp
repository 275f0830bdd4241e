// The text of POST /api/explain. Any text is rejected with a sentence, or read as a request. Written as JSON
// again, the request reads the same.
#include "admin/pages/inquiry_reader.hpp"
#include "fuzz/input.hpp"

#include <string_view>
#include <tuple>

#include <boost/json.hpp>

namespace weir::fuzz {
namespace {

namespace json = boost::json;

auto parts_of(const policy::Inquiry& inquiry) {
  return std::tie(inquiry.method, inquiry.host, inquiry.target, inquiry.peer, inquiry.headers, inquiry.body,
                  inquiry.certificate_subject);
}

std::string written(const policy::Inquiry& inquiry) {
  json::object headers;
  for (const auto& [name, value] : inquiry.headers) {
    auto& lines = headers[name];
    if (lines.is_null()) lines = json::array();
    lines.as_array().emplace_back(value);
  }
  json::object said{{"method", inquiry.method},       {"path", inquiry.target},
                    {"ip", inquiry.peer.to_string()}, {"headers", std::move(headers)},
                    {"body", inquiry.body},           {"certificate", inquiry.certificate_subject}};
  if (inquiry.host) said["host"] = *inquiry.host;
  return json::serialize(said);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  policy::Inquiry inquiry;
  if (const auto fault = admin::read_inquiry(text, inquiry)) {
    fuzz::require(!fault->empty(), "a fault is a sentence");
    return 0;
  }
  policy::Inquiry again;
  fuzz::require(!admin::read_inquiry(fuzz::written(inquiry), again), "what was read is a request still");
  fuzz::require(fuzz::parts_of(inquiry) == fuzz::parts_of(again), "and the same one");
  return 0;
}
