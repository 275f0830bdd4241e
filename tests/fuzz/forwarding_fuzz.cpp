// Fuzzes forwarded heads. If weir parses a head that it forwards, it must accept this head and find the same
// method, path and body framing as in the received head.
#include "fuzz/input.hpp"

#include "weir/http/forwarding.hpp"
#include "weir/http/head_parser.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

using http::FieldId;
using http::Framing;

auto count(const http::Fields& fields, FieldId id) {
  return std::count_if(fields.begin(), fields.end(),
                       [&](const http::Field& field) { return field.id == id; });
}

void check_fields(const http::Fields& fields) {
  require(count(fields, FieldId::ContentLength) + count(fields, FieldId::TransferEncoding) <= 1,
          "one framing");
  for (const auto id :
       {FieldId::Te, FieldId::Trailer, FieldId::KeepAlive, FieldId::ProxyConnection, FieldId::Upgrade})
    require(count(fields, id) == 0, "what is hop-by-hop ends here");
}

void check_request(std::string_view bytes, const http::ForwardedBy& by) {
  http::RequestHead head;
  if (parse_request_head(bytes, head) || head.max_forwards == 0U) return;
  const auto room = head.fields.capacity() - head.fields.size();
  if (room < 12) return;  // weir adds at most 12 fields of its own
  std::string out;
  write_request_head(out, head, by);
  http::RequestHead again;
  require(!parse_request_head(out, again), "what goes on is a request");
  require(again.method == head.method && again.query == head.query, "the same one");
  require(again.path == head.path, "of the same path");
  require(again.authority == (by.host.empty() ? head.authority : by.host), "to the configured host");
  require(again.framing == head.framing && again.content_length == head.content_length, "of the same body");
  require(again.minor_version == 1 && again.keep_alive, "by HTTP/1.1, kept alive");
  require(count(again.fields, FieldId::Host) == 1, "for one host");
  require(by.peer_trusted || count(again.fields, FieldId::XForwardedFor) == 1, "said to come from one");
  if (!by.peer_trusted && by.trusted_fields != nullptr)
    for (const auto& field : again.fields)
      require(field.id != FieldId::Other || !by.trusted_fields->contains(field.name),
              "strangers do not say who the client is");
  check_fields(again.fields);
}

void check_response(std::string_view bytes, std::string_view method, unsigned minor_version) {
  http::ResponseHead head;
  if (parse_response_head(bytes, method == "HEAD", head) || head.status < 200) return;
  if (head.fields.capacity() - head.fields.size() < 4) return;
  http::RequestHead request;
  request.method = method;
  request.minor_version = minor_version;
  const auto form = response_form(request, head, true);
  std::string out;
  write_response_head(out, head, form, "X-RateLimit-Limit: 1\r\n", "now");
  for (auto at = out.find('\n'); at != std::string::npos; at = out.find('\n', at + 1))
    require(at > 0 && out[at - 1] == '\r', "no bare LF goes on");
  http::ResponseHead again;
  require(!parse_response_head(out, method == "HEAD", again), "what goes on is an answer");
  require(again.status == head.status, "the same one");
  require(count(again.fields, FieldId::Date) >= 1, "of some date");
  require(again.framing == form.framing, "of the body that follows");
  require(form.framing != Framing::Length || again.content_length == head.content_length, "of that length");
  require(minor_version == 1 || form.framing != Framing::Chunked, "no chunks to HTTP/1.0");
  require(again.keep_alive == form.keep_alive || minor_version == 0, "kept alive as it says");
  check_fields(again.fields);
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  if (size == 0) return 0;
  const std::string input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const unsigned choice = bytes[0];
  static const auto trusted_fields = http::usual_trusted_fields();
  if (const auto end = http::find_head_end(input))
    fuzz::check_request(input.substr(0, end),
                        {.peer = "203.0.113.7",
                         .proto = "http",
                         .request_id = "id",
                         .peer_trusted = (choice & 1U) != 0,
                         .uses_forwarded = (choice & 2U) != 0,
                         .add_forwarded = (choice & 4U) != 0,
                         .underscores = (choice & 8U) != 0,
                         .trusted_fields = (choice & 32U) != 0 ? &trusted_fields : nullptr,
                         .whole_and_plain = (choice & 16U) != 0,
                         .host = (choice & 64U) != 0 ? "server:80" : ""});
  if (const auto end = http::find_answer_head_end(input))
    fuzz::check_response(input.substr(0, end), (choice & 1U) != 0 ? "HEAD" : "GET", choice >> 1U & 1U);
  return 0;
}
