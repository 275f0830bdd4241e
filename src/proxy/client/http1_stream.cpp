#include "proxy/client/http1_stream.hpp"

#include "proxy/client/session.hpp"

#include "weir/http/forwarding.hpp"

#include <sys/socket.h>

namespace weir::proxy {

namespace {

// weir keeps the connection after a refused request if the request's body has at most this many bytes. weir
// reads and drops such a body. If the body is larger, weir closes the connection.
constexpr std::uint64_t kDiscarded = 64 << 10;

}  // namespace

Http1Stream::Http1Stream(Session& session) noexcept
    : ClientStream(session.worker, session, session.peer), session_(session) {}

std::optional<http::Fault> Http1Stream::read_head(std::size_t size, http::RequestHead& head,
                                                  std::string& out) {
  auto& inbox = session_.inbox;
  inbox.make_room_behind(size);
  head_bytes_ = inbox.unread().substr(0, size);
  inbox.use_and_pin(size);
  head_ = &head;
  out_ = &out;
  if (auto fault = http::parse_request_head(head_bytes_, head)) return fault;
  body_ = &source_.emplace(session_.client, inbox, head.framing, head.content_length);
  return std::nullopt;
}

void Http1Stream::forget_exchange() noexcept {
  head_ = nullptr;
  out_ = nullptr;
  sink_.reset();
}

Http1Stream::Next Http1Stream::after(Ending ending) const noexcept {
  if (ending == Ending::Abort || session_.client.owes_write()) return Next::Abort;
  if (ending == Ending::Close) return Next::Close;
  if (!keep_alive_) return Next::Linger;
  return head_->framing == http::Framing::None || body_->complete() ? Next::KeepAlive : Next::DropRest;
}

bool Http1Stream::is_secure() const noexcept {
  return session_.is_secure();
}

std::string_view Http1Stream::listener_name() const noexcept {
  return session_.listener_name();
}

std::string_view Http1Stream::certificate() {
  return session_.certificate();
}

std::optional<http::ConnectionEnds> Http1Stream::ends() const {
  return session_.ends();
}

net::Task<net::ErrorCode> Http1Stream::send_continue() {
  return session_.client.write("HTTP/1.1 100 Continue\r\n\r\n");
}

net::Task<net::ErrorCode> Http1Stream::send_interim(const http::ResponseHead& head) {
  if (head_->minor_version == 0) return net::Task<net::ErrorCode>::ended({});
  interim_.clear();
  http::write_interim_head(interim_, head);
  return session_.client.write(interim_);
}

bool Http1Stream::can_answer() const noexcept {
  return !session_.client.owes_write();
}

std::optional<net::ErrorCode> Http1Stream::try_answer(http::Answer answer) {
  const bool in_step = answer.keep_alive && (head_->framing == http::Framing::None || drop_body());
  answer.keep_alive = keep_alive_ = in_step && head_->keep_alive && !session_.is_leaving();
  answer.client_minor_version = head_->minor_version;
  out_->clear();
  http::write_answer(*out_, answer);
  net::ErrorCode ec;
  sent_ = session_.client.try_write(*out_, {}, ec);
  worker.counters.bytes_out.add(sent_);
  if (!ec && sent_ < out_->size()) return std::nullopt;
  return ec;
}

net::Task<net::ErrorCode> Http1Stream::finish_answer() {
  const auto rest = std::string_view(*out_).substr(sent_);
  worker.counters.bytes_out.add(rest.size());
  return session_.client.write_rest(rest);
}

// Drops the part of the body that has arrived. Returns true if the next request can follow once the caller
// has dropped the rest of the body.
bool Http1Stream::drop_body() {
  if (body_->complete()) return true;
  if (head_->content_length > kDiscarded) return false;
  body_->allow(kDiscarded);
  const auto status = body_->drop();
  if (status == BodySource::Status::End) return true;
  // If the client waits for 100 Continue, weir cannot know whether the body will follow (RFC 9110 §10.1.1).
  // So no further request can follow on this connection.
  return status == BodySource::Status::NeedBytes && !head_->expects_continue;
}

BodySink& Http1Stream::begin_answer(const http::ResponseHead& head, const AnswerAdditions& additions) {
  const auto form = http::response_form(
      *head_, head, head_->keep_alive && !session_.is_leaving() && additions.request_sent);
  keep_alive_ = form.keep_alive;
  until_close_ = form.framing == http::Framing::UntilClose;
  out_->clear();
  http::write_response_head(*out_, head, form, additions.fields, additions.date);
  return sink_.emplace(session_.client, form.framing, *out_);
}

std::size_t Http1Stream::unacknowledged() const noexcept {
  return session_.client.unacknowledged();
}

// Must be called for a truncated answer. If the end of the connection marks the end of the answer, makes the
// kernel close the connection with a reset.
void Http1Stream::cut_answer() noexcept {
  if (!until_close_) return;
  const linger now{1, 0};
  ::setsockopt(session_.client.native_handle(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

net::Task<net::ErrorCode> Http1Stream::send_upgrade(const http::ResponseHead& head, std::string_view protocol,
                                                    std::string_view fields) {
  keep_alive_ = false;
  out_->clear();
  http::write_switch_head(*out_, head, protocol, fields);
  const auto ec = co_await session_.client.write(*out_);
  if (!ec) worker.counters.bytes_out.add(out_->size());
  co_return ec;
}

ClientStream::Octets Http1Stream::octets() noexcept {
  return {session_.client, session_.inbox};
}

void Http1Stream::cancel() noexcept {
  session_.client.cancel();
}

void Http1Stream::close() noexcept {
  session_.client.close();
}

}  // namespace weir::proxy
