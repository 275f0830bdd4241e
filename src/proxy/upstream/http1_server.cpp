#include "proxy/upstream/http1_server.hpp"

#include "weir/http/chunked.hpp"
#include "weir/http/forwarding.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/http/upgrade.hpp"

namespace weir::proxy {

namespace {

// Returns true if the received part of an answer's body is malformed from its first octet.
bool begins_badly(const http::ResponseHead& head, std::string_view body) noexcept {
  return head.framing == http::Framing::Chunked &&
         http::ChunkDecoder(http::ChunkDecoder::Sender::Server).next(body).status ==
             http::ChunkDecoder::Status::Bad;
}

}  // namespace

void write_request_head(ExchangeContext& context, const ServerAttempt& attempt, std::string_view host) {
  auto& buffers = context.buffers;
  const auto& client = context.client;
  const auto& config = context.config;
  buffers.out.clear();
  http::write_request_head(
      buffers.out, buffers.head,
      {.peer = client.peer.address == base::IpAddress() ? std::string_view() : client.peer.text,
       .proto = client.is_secure() ? "https" : "http",
       .request_id = buffers.request_id,
       .peer_trusted = buffers.request.client.peer_trusted,
       .uses_forwarded = config.client.address_field == policy::AddressField::Forwarded,
       .add_forwarded = config.server.forwarded,
       .underscores = config.server.underscores_in_headers,
       .trusted_fields = &config.client.trusted_fields,
       .whole_and_plain = context.admission.settlements().want_body(),
       .upgrade = attempt.upgrade,
       .path = buffers.forwarded_path,
       .added = buffers.forwarded_fields,
       .host = host});
}

void edit_request(ExchangeContext& context) {
  if (context.buffers.trace) context.pass_trace_on();
  const auto& edits = context.route()->edits;
  if (!edits) return;
  auto& buffers = context.buffers;
  if (edits->request.uses_token || edits->response.uses_token) context.verify_token();
  if (edits->path && !edits->path->apply(buffers.request.path, buffers.forwarded_path))
    buffers.forwarded_path.clear();
  policy::drop_fields(edits->request, buffers.head.fields);
  policy::append_lines(edits->request, context.template_values(), buffers.forwarded_fields);
}

AnswerHeadReader::AnswerHeadReader(ExchangeContext& context, ServerAttempt& attempt)
    : context_(context), attempt_(attempt) {
  context_.buffers.answer.release();
}

net::ErrorCode AnswerHeadReader::receive() {
  net::ErrorCode ec;
  auto& answer = context_.buffers.answer;
  char* at = answer.space();
  const auto count = attempt_.lease.stream().try_read(at, answer.room(), ec);
  answer.received(count);
  return ec;
}

AnswerHeadReader::State AnswerHeadReader::parse(bool request_sent) {
  auto& buffers = context_.buffers;
  auto& answer = buffers.answer;
  const auto size = http::find_answer_head_end(answer.unread(), searched_);
  if (size == 0 || size > context_.config.server.max_head) return judge_unfinished(size);
  searched_ = 0;
  answer.make_room_behind(size);
  const bool to_head = buffers.head.method == "HEAD";
  if (const auto fault =
          http::parse_response_head(answer.unread().substr(0, size), to_head, buffers.response))
    return fail(fault->what, fault->status == 431);
  const auto status = buffers.response.status;
  if (status == 101 && !may_upgrade(request_sent)) return State::Faulty;
  if (status < 200 && status != 101) {
    answer.use(size);
    return State::Interim;
  }
  answer.use_and_pin(size);
  read_body_framing(to_head);
  // Rejects a body that is malformed from its first octet. The client has received no octet of the answer, so
  // weir can still try another server.
  if (begins_badly(buffers.response, answer.unread())) return fail("the upstream's answer is malformed");
  context_.read_clock();
  context_.report.answered = context_.now;
  context_.report.server_status = status;
  return State::Whole;
}

void AnswerHeadReader::read_body_framing(bool to_head) noexcept {
  auto& response = context_.buffers.response;
  const bool bodiless = to_head || response.status == 204 || response.status == 304;
  attempt_.body_framing = response.framing;
  if (!attempt_.lease.is_http2() || bodiless) return;
  attempt_.body_framing = http::Framing::Chunked;
  response.trailers_may_follow = true;
  if (response.framing == http::Framing::UntilClose) response.framing = http::Framing::Chunked;
}

// Returns the state of a head that is incomplete or too large. Octets that are no HTTP head are reported as
// malformed, even if there are too many of them.
AnswerHeadReader::State AnswerHeadReader::judge_unfinished(std::size_t size) {
  const auto unread = context_.buffers.answer.unread();
  const bool too_large = size != 0 || unread.size() >= context_.config.server.max_head;
  const auto begun = size != 0 ? unread.substr(0, size) : unread;
  if (const auto fault = http::find_early_answer_fault(begun, too_large ? 0 : searched_))
    return fail(fault->what);
  if (too_large) return fail("the upstream's answer has too large a head", true);
  searched_ = unread.size();
  // More octets are needed. But if the upload of the request has failed during another wait, the attempt
  // ends.
  return attempt_.body_fault ? State::Faulty : State::Missing;
}

// Returns true if a 101 confirms the protocol that the client requested. The whole request must have been
// sent. Otherwise the server would read data of the new protocol as a part of the request.
bool AnswerHeadReader::may_upgrade(bool request_sent) {
  const auto& upgrade = attempt_.upgrade;
  if (!request_sent)
    attempt_.error.what = "the upstream switched protocols before it had the whole request";
  else if (upgrade.empty())
    attempt_.error.what = "the upstream switched protocols unasked";
  else if (!http::switches_to(context_.buffers.response, upgrade))
    attempt_.error.what = "the upstream switched to another protocol than it was asked for";
  else
    return true;
  return false;
}

AnswerHeadReader::State AnswerHeadReader::fail(std::string_view what, bool oversized) {
  attempt_.oversized = attempt_.oversized || oversized;
  attempt_.error.what = what;
  return State::Faulty;
}

}  // namespace weir::proxy
