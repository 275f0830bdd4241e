#include "proxy/client/head_refusal.hpp"

#include "weir/http/answer.hpp"
#include "weir/http/rejected_head.hpp"

#include <optional>

namespace weir::proxy {

namespace {

// The Allow field of a 405 (RFC 9110 §15.5.6). weir forwards every method but CONNECT.
constexpr std::string_view kAllow = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE\r\n";

observe::ClientError kind_of(const http::Fault& fault) noexcept {
  if (fault.status == 408) return observe::ClientError::HeadTimeout;
  const bool large = fault.status == 431 || fault.status == 414;
  return large ? observe::ClientError::HeadTooLarge : observe::ClientError::BadHead;
}

}  // namespace

net::Task<void> HeadRefusal::send(http::Fault fault) {
  const auto kind = kind_of(fault);
  worker_.counters.client_errors(kind).add();
  worker_.counters.requests(std::nullopt, fault.status).add();
  std::string body;
  http::append_error_json(body, fault.status, fault.what);
  std::string id, out;
  worker_.make_request_id(id);
  http::write_answer(out, {.status = fault.status,
                           .body = body,
                           .fields = fault.status == 405 ? kAllow : std::string_view{},
                           .date = worker_.http_date(net::Clock::machine_now()),
                           .request_id = id,
                           .keep_alive = false});
  net::ErrorCode ec;
  auto sent = client_.try_write(out, {}, ec);
  watch_.clear_late();
  if (!ec && sent < out.size()) {
    watch_.arm(worker_.config().server.write_timeout);
    ec = co_await client_.write_rest(std::string_view(out).substr(sent));
    watch_.disarm();
    if (!ec) sent = out.size();
  }
  worker_.counters.bytes_out.add(sent);
  log(fault, kind, sent, id);
  watch_.clear_late();
}

// Logs the client, the fault, and as much of the head as weir can parse.
void HeadRefusal::log(const http::Fault& fault, observe::ClientError kind, std::size_t sent,
                      std::string_view id) {
  if (worker_.access_log == nullptr) return;
  const auto head = http::read_rejected_head(bytes_);
  std::string redacted;
  observe::AccessRecord record;
  record.method = head.method;
  record.target = worker_.config().redaction.redacted(head.target, redacted);
  record.host = head.host;
  record.start = net::Clock::machine_now();
  record.client = peer_.address;
  record.status = fault.status;
  record.bytes_out = sent;
  record.request_id = id;
  record.error = kind == observe::ClientError::HeadTimeout    ? "head_timeout"
                 : kind == observe::ClientError::HeadTooLarge ? "head_too_large"
                                                              : "bad_head";
  const observe::ReplayRecord unasked;
  record.replay = &unasked;
  worker_.access_log->record(record);
}

}  // namespace weir::proxy
