#include "proxy/client/head_refusal.hpp"

#include "weir/http/answer.hpp"
#include "weir/http/rejected_head.hpp"

#include <optional>

namespace weir::proxy {

namespace {

// The Allow field of a 405 (RFC 9110 §15.5.6). weir forwards all methods except CONNECT.
constexpr std::string_view kAllow = "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE\r\n";

observe::ClientError kind_of(const http::Fault& fault) noexcept {
  if (fault.status == 408) return observe::ClientError::HeadTimeout;
  const bool large = fault.status == 431 || fault.status == 414;
  return large ? observe::ClientError::HeadTooLarge : observe::ClientError::BadHead;
}

}  // namespace

http::Answer HeadRefusal::answer(const http::Fault& fault) {
  worker_.counters.client_errors(kind_of(fault)).add();
  worker_.counters.requests(std::nullopt, fault.status).add();
  http::append_error_json(body_, fault.status, fault.what);
  worker_.make_request_id(id_);
  return {.status = fault.status,
          .body = body_,
          .fields = fault.status == 405 ? kAllow : std::string_view{},
          .date = worker_.http_date(net::Clock::machine_now()),
          .request_id = id_,
          .keep_alive = false};
}

void HeadRefusal::report(const http::Fault& fault, std::size_t sent) {
  if (worker_.access_log == nullptr) return;
  const auto kind = kind_of(fault);
  const auto head = http::read_rejected_head(bytes_);
  std::string redacted;
  observe::AccessRecord record;
  record.protocol = protocol_;
  record.method = head.method;
  record.target = worker_.config().redaction.redacted(head.target, redacted);
  record.host = head.host;
  record.start = net::Clock::machine_now();
  record.client = peer_.address;
  record.status = fault.status;
  record.bytes_out = sent;
  record.request_id = id_;
  record.error = kind == observe::ClientError::HeadTimeout    ? "head_timeout"
                 : kind == observe::ClientError::HeadTooLarge ? "head_too_large"
                                                              : "bad_head";
  const observe::ReplayRecord unasked;
  record.replay = &unasked;
  worker_.access_log->record(record);
}

net::Task<void> refuse_head(Worker& worker, ClientWatch& watch, net::Stream& client, const ClientPeer& peer,
                            http::Fault fault, std::string_view bytes) {
  HeadRefusal refusal(worker, peer, bytes, {});
  std::string out;
  http::write_answer(out, refusal.answer(fault));
  net::ErrorCode ec;
  auto sent = client.try_write(out, {}, ec);
  watch.clear_late();
  if (!ec && sent < out.size()) {
    watch.arm(worker.config().server.write_timeout);
    ec = co_await client.write_rest(std::string_view(out).substr(sent));
    watch.disarm();
    if (!ec) sent = out.size();
  }
  worker.counters.bytes_out.add(sent);
  refusal.report(fault, sent);
  watch.clear_late();
}

}  // namespace weir::proxy
