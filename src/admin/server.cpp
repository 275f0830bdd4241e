#include "weir/admin/server.hpp"

#include "admin/admission.hpp"
#include "admin/connections.hpp"

#include "weir/admin/recorder.hpp"
#include "weir/net/listener.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <unistd.h>

namespace weir::admin {

namespace {

namespace asio = net::asio;
namespace http = boost::beast::http;

using net::Acceptor;
using net::Awaitable;
using net::ErrorCode;
using net::into;
using Parser = http::request_parser<http::string_body>;
using Response = http::response<http::string_body>;

constexpr std::size_t kMaxHead = 8 << 10;   // bytes
constexpr std::size_t kMaxBody = 64 << 10;  // bytes
constexpr std::size_t kMaxDiscarded =
    64 << 10;  // bytes read after the last answer, so that it is not lost to a reset
constexpr base::Duration kAcceptPause{100'000};  // after an accept that failed: out of descriptors, mostly

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

Response to_response(Answer answer, const Parser* request) {
  Response response(static_cast<http::status>(answer.status), 11);
  const auto set = [&](auto field, std::string_view value) {
    response.set(field, boost::beast::string_view(value.data(), value.size()));
  };
  for (const auto& [name, value] : kGuardingFields) set(boost::beast::string_view(name), value);
  set(http::field::content_type, answer.content_type);
  set(http::field::cache_control, answer.etag.empty() ? "no-store" : "no-cache");
  if (!answer.etag.empty()) set(http::field::etag, answer.etag);
  if (!answer.allow.empty()) set(http::field::allow, answer.allow);
  if (answer.challenge) set(http::field::www_authenticate, "Bearer realm=\"weir admin\"");
  response.keep_alive(request != nullptr && request->get().keep_alive());
  if (answer.status != 304) response.content_length(answer.body.size());
  if (request == nullptr || request->get().method() != http::verb::head)
    response.body() = std::move(answer.body);
  return response;
}

bool announces_body(const Parser& parser) {
  return parser.chunked() || parser.content_length().value_or(0) > 0;
}

// "203.0.113.7:50000"
std::string peer_of(const net::Socket& socket) {
  ErrorCode ec;
  const auto peer = socket.remote_endpoint(ec);
  if (ec || net::peer_port(peer) == 0) return "unix";
  return base::Endpoint{net::peer_address(peer).to_string(), net::peer_port(peer), {}}.to_string();
}

Question question_of(const Parser& parser, const net::Socket& socket) {
  const auto& request = parser.get();
  const auto field = [&](auto name) { return view(request[name]); };
  return {.method = view(request.method_string()),
          .target = view(request.target()),
          .authorization = field(http::field::authorization),
          .host = field(http::field::host),
          .origin = field(http::field::origin),
          .fetch_site = field("Sec-Fetch-Site"),
          .content_type = field(http::field::content_type),
          .if_none_match = field(http::field::if_none_match),
          .has_body = announces_body(parser),
          .peer = peer_of(socket)};
}

Answer too_large() {
  return error_answer(413, "body_too_large", "A body may have 64 KiB here.");
}

// What to say to bytes that are no request; nullopt when there is nobody left to say it to.
std::optional<Answer> fault_answer(const ErrorCode& ec) {
  if (ec == http::error::header_limit) return error_answer(431, "head_too_large", "The head may have 8 KiB.");
  if (ec == http::error::body_limit) return too_large();
  if (ec == http::error::end_of_stream || ec == http::error::partial_message) return std::nullopt;
  if (ec.category() != make_error_code(http::error::bad_method).category()) return std::nullopt;
  return error_answer(400, "bad_request", "This is not a request of HTTP/1.1.");
}

// The same of a body.
std::optional<Answer> fault_of_body(const ErrorCode& ec, bool late) {
  if (!ec) return std::nullopt;
  if (late) return error_answer(408, "request_timeout", "The body did not come in time.");
  if (ec == http::error::body_limit) return too_large();
  return error_answer(400, "bad_request", "The body is not whole.");
}

// RFC 9112 §3.2: whoever stands between may go by the other one of two.
std::optional<Answer> fault_of_host(const Parser& parser) {
  const auto& request = parser.get();
  const auto hosts = request.count(http::field::host);
  if (hosts == 1 || (hosts == 0 && request.version() < 11)) return std::nullopt;
  return error_answer(400, "bad_host", "A request of HTTP/1.1 has one Host, and no more than one.");
}

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
  Impl(asio::io_context& io, ServerOptions given, Sources read, net::ListeningSocket listening)
      : options(std::move(given)),
        admission{Token(options.token), options.address},
        bound(listening.address()),
        acceptor(std::move(listening).into_acceptor(io.get_executor())),
        vacancy(io.get_executor()),
        sweep_timer(io.get_executor()),
        record_timer(io.get_executor()) {
    read_from(std::move(read));
  }

  void read_from(Sources fresh) {
    fresh.recorder = &recorder;
    sources = std::make_shared<const Sources>(std::move(fresh));
  }

  void stop();

  Awaitable<void> accept();
  Awaitable<void> sweep();
  Awaitable<void> record();
  Awaitable<void> serve(net::Socket socket);
  Awaitable<bool> serve_one(Connection& connection, boost::beast::flat_buffer& buffer);
  Awaitable<Answer> answer(Connection& connection, boost::beast::flat_buffer& buffer, Parser& parser);
  static Awaitable<std::optional<Answer>> read_body(Connection& connection, boost::beast::flat_buffer& buffer,
                                                    Parser& parser);
  Awaitable<bool> send(Connection& connection, Response response);
  Awaitable<void> discard(Connection& connection);
  void spawn(Awaitable<void> task);

  ServerOptions options;
  // Shared with the answers under way, which may wait while there are newer ones.
  std::shared_ptr<const Sources> sources;
  Admission admission;
  base::Endpoint bound;
  Acceptor acceptor;
  net::Timer vacancy;  // after an accept that failed; cancelled when a connection ends
  net::Timer sweep_timer;
  net::Timer record_timer;
  Recorder recorder;
  Connections connections;
  bool stopped = false;
  bool retired = false;
  bool owns_file = true;  // a unix socket's; not one that another process listens on
};

void Server::Impl::stop() {
  if (stopped) return;
  stopped = true;
  ErrorCode ignored;
  if (acceptor.is_open() && bound.is_unix() && owns_file) ::unlink(bound.unix_path.c_str());
  acceptor.close(ignored);
  vacancy.cancel();
  sweep_timer.cancel();
  record_timer.cancel();
  connections.close_all();
}

void Server::Impl::spawn(Awaitable<void> task) {
  asio::co_spawn(acceptor.get_executor(), std::move(task),
                 [self = shared_from_this()](std::exception_ptr failure) {
                   self->vacancy.cancel();
                   if (!failure || self->stopped || !self->options.fault) return;
                   try {
                     std::rethrow_exception(failure);
                   } catch (const std::exception& error) {
                     self->options.fault(error.what());
                   }
                 });
}

Awaitable<void> Server::Impl::accept() {
  const auto self = shared_from_this();
  while (!stopped && !retired) {
    ErrorCode ec;
    net::Socket socket(acceptor.get_executor());
    co_await acceptor.async_accept(socket, into(ec));
    if (stopped) break;
    if (!ec) {
      spawn(serve(std::move(socket)));
      continue;
    }
    vacancy.expires_after(kAcceptPause);
    co_await vacancy.async_wait(into(ec));
  }
}

// Closes what has outlived its deadline; whoever waits on that socket then ends.
Awaitable<void> Server::Impl::sweep() {
  const auto self = shared_from_this();
  const auto pause = std::min<base::Duration>(std::min(options.head_deadline, options.deadline) / 4,
                                              std::chrono::seconds(1));
  while (!stopped) {
    ErrorCode ec;
    sweep_timer.expires_after(pause);
    co_await sweep_timer.async_wait(into(ec));
    connections.end_late();
  }
}

// For who opens the dashboard later.
Awaitable<void> Server::Impl::record() {
  const auto self = shared_from_this();
  while (!stopped && sources->now) {
    recorder.look(*sources, sources->now());
    ErrorCode ec;
    record_timer.expires_after(Recorder::kStep);
    co_await record_timer.async_wait(into(ec));
  }
}

Awaitable<void> Server::Impl::serve(net::Socket socket) {
  const auto self = shared_from_this();
  connections.make_room(options.max_connections);
  Connection connection(std::move(socket), connections);
  connection.begin(options.head_deadline);
  boost::beast::flat_buffer buffer(kMaxHead);
  bool more = true;
  while (more) {
    more = co_await serve_one(connection, buffer);
    connection.begin(options.deadline);
  }
}

// One request and its answer. False when it was the connection's last.
Awaitable<bool> Server::Impl::serve_one(Connection& connection, boost::beast::flat_buffer& buffer) {
  Parser parser;
  parser.header_limit(kMaxHead);
  parser.body_limit(kMaxBody);
  ErrorCode ec;
  co_await http::async_read_header(connection.socket, buffer, parser, into(ec));
  if (stopped) co_return false;
  connection.answers = true;
  std::optional<Answer> said;
  if (ec)
    said = fault_answer(ec);
  else
    said = co_await answer(connection, buffer, parser);
  if (!said || stopped) co_return false;
  connection.begin(options.deadline);
  // What of a body was not read would be taken for the next request.
  const bool whole = !ec && parser.is_done();
  auto response = to_response(std::move(*said), whole ? &parser : nullptr);
  if (retired) response.keep_alive(false);
  const bool kept = co_await send(connection, std::move(response));
  connection.answers = false;
  co_return kept;
}

Awaitable<Answer> Server::Impl::answer(Connection& connection, boost::beast::flat_buffer& buffer,
                                       Parser& parser) {
  if (auto fault = fault_of_host(parser)) co_return std::move(*fault);
  Question question = question_of(parser, connection.socket);
  auto admitted = admit(admission, question);
  if (auto* refusal = std::get_if<Answer>(&admitted)) co_return std::move(*refusal);
  const Page& page = *std::get<const Page*>(admitted);
  question.has_token = admission.token.admits(question.authorization);
  const auto read = sources;
  if (question.has_body) {
    connection.begin(options.deadline);
    auto fault = co_await read_body(connection, buffer, parser);
    if (fault) co_return std::move(*fault);
    question.body = parser.get().body();
  }
  connection.begin(options.deadline + (page.upgrades ? read->longest_upgrade : base::Duration{0}));
  if (const auto* say = std::get_if<Page::Say>(&page.handler))
    co_return unless_known((*say)(*read, question), question);
  auto asked = std::get<Page::Ask>(page.handler)(*read, question);
  auto said = co_await std::move(asked);
  co_return unless_known(std::move(said), question);
}

// What is wrong with it; nullopt when it is there.
Awaitable<std::optional<Answer>> Server::Impl::read_body(Connection& connection,
                                                         boost::beast::flat_buffer& buffer, Parser& parser) {
  ErrorCode ec;
  connection.reads_body = true;
  if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto bytes = asio::buffer(kContinue);
    co_await asio::async_write(connection.socket, bytes, into(ec));
  }
  if (!ec) co_await http::async_read(connection.socket, buffer, parser, into(ec));
  connection.reads_body = false;
  co_return fault_of_body(ec, std::exchange(connection.late, false));
}

// False when the connection is not to be used again.
Awaitable<bool> Server::Impl::send(Connection& connection, Response response) {
  ErrorCode ec;
  co_await http::async_write(connection.socket, response, into(ec));
  if (ec || stopped) co_return false;
  if (response.keep_alive()) co_return true;
  co_await discard(connection);
  co_return false;
}

// Closing with unread bytes would reset the connection and take the answer with it (RFC 9112 §9.6): read them
// first.
Awaitable<void> Server::Impl::discard(Connection& connection) {
  ErrorCode ec;
  connection.socket.shutdown(asio::socket_base::shutdown_send, ec);
  std::array<char, 1024> bytes;
  const auto into_bytes = asio::buffer(bytes);
  std::size_t sum = 0;
  while (!ec && sum < kMaxDiscarded) {
    const std::size_t read = co_await connection.socket.async_read_some(into_bytes, into(ec));
    sum += read;
  }
}

base::Result<std::unique_ptr<Server>> Server::listen(asio::io_context& io, ServerOptions options,
                                                     Sources sources,
                                                     std::optional<net::ListeningSocket> inherited) {
  const bool is_first = !inherited;
  auto listening = inherited ? base::Result<net::ListeningSocket>(std::move(*inherited))
                             : net::ListeningSocket::open(options.address);
  if (!listening) return base::Error{"admin: " + listening.error().message};
  auto impl = std::make_shared<Impl>(io, std::move(options), std::move(sources), std::move(*listening));
  impl->owns_file = is_first;
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Server::~Server() {
  stop();
}

void Server::start() {
  impl_->owns_file = true;
  impl_->spawn(impl_->accept());
  impl_->spawn(impl_->sweep());
  impl_->spawn(impl_->record());
}

void Server::renew(Sources sources) {
  impl_->read_from(std::move(sources));
}

void Server::stop() {
  impl_->stop();
}

void Server::retire() {
  impl_->retired = true;
  net::close_acceptor(impl_->acceptor);
}

bool Server::is_answering() const noexcept {
  return impl_->connections.is_answering();
}

int Server::socket() const noexcept {
  return impl_->acceptor.native_handle();
}

const base::Endpoint& Server::bound() const noexcept {
  return impl_->bound;
}

}  // namespace weir::admin
