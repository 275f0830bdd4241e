#include "weir/admin/server.hpp"

#include "admin/metrics/faults.hpp"
#include "admin/pages/admission.hpp"
#include "admin/pages/messages.hpp"
#include "admin/server/connections.hpp"

#include "weir/admin/recorder.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/reactor.hpp"
#include "weir/net/use_task.hpp"

#include <algorithm>
#include <array>
#include <deque>
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

using net::AcceptorSocket;
using net::ErrorCode;
using net::Task;
using net::use_task;

constexpr std::size_t kMaxHead = 8 << 10;   // largest size of a request head in bytes
constexpr std::size_t kMaxBody = 64 << 10;  // largest size of a request body in bytes
// Largest number of bytes to read after the last response. If unread bytes were left, closing would reset the
// connection, and the client could lose the response.
constexpr std::size_t kMaxDiscarded = 64 << 10;
// Pause after a failed accept. An accept usually fails because no file descriptor is left.
constexpr base::Duration kAcceptPause{100'000};

}  // namespace

namespace {

// One listening socket with its acceptor and timer. The admin listener has one ListeningPort for each of its
// addresses.
struct ListeningPort {
  explicit ListeningPort(net::ListeningSocket listening, net::Executor executor)
      : acceptor(std::move(listening).into_acceptor(executor)), vacancy(executor) {}
  AcceptorSocket acceptor;
  net::Timer vacancy;  // the pause after a failed accept; the end of a connection cancels this pause
};

}  // namespace

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
  // REQUIRES at least one listening socket.
  Impl(asio::io_context& io, ServerOptions given, Sources read, std::vector<net::ListeningSocket> listening)
      : options(std::move(given)),
        admission{Token(options.token), options.address},
        bound(listening.front().address()),
        executor(io.get_executor()),
        sweep_timer(io.get_executor()),
        record_timer(io.get_executor()) {
    for (auto& socket : listening) addresses.push_back(socket.bound());
    for (auto& socket : listening) ports.emplace_back(std::move(socket), executor);
    read_from(std::move(read));
  }

  void read_from(Sources fresh) {
    fresh.recorder = &recorder;
    fresh.admin_faults = [this] {
      return accepting.count() + sweeping.count() + recording.count() + answering.count();
    };
    sources = std::make_shared<const Sources>(std::move(fresh));
  }

  void stop();

  Task<void> accept(ListeningPort& port);
  void end_accept_pauses();
  Task<void> repeat(net::Timer& timer, base::Duration pause, Faults& faults, void (Impl::*step)());
  void sweep();
  void record();
  [[nodiscard]] base::Duration sweep_pause() const;
  Task<void> serve(net::Socket socket);
  Task<bool> serve_one(Connection& connection, boost::beast::flat_buffer& buffer);
  Task<Answer> answer(Connection& connection, boost::beast::flat_buffer& buffer, Parser& parser);
  static Task<std::optional<Answer>> read_body(Connection& connection, boost::beast::flat_buffer& buffer,
                                               Parser& parser);
  Task<bool> send(Connection& connection, Response response);
  Task<void> discard(Connection& connection);
  void spawn(Task<void> task);

  ServerOptions options;
  // Set by renew(). A request that has begun continues to use the sources that were set before.
  std::shared_ptr<const Sources> sources;
  Admission admission;
  base::Endpoint bound;
  std::vector<base::Endpoint> addresses;  // the listening addresses, one for each element of `ports`
  net::Executor executor;
  std::deque<ListeningPort> ports;
  net::Timer sweep_timer;
  net::Timer record_timer;
  Recorder recorder;
  Faults accepting{"admin: accepting", options.fault};
  Faults sweeping{"admin: ending what is late", options.fault};
  Faults recording{"admin: recording", options.fault};
  Faults answering{"admin: answering", options.fault};
  Connections connections;
  bool stopped = false;
  bool retired = false;
  // True: this process must remove the file of its unix socket. False: another process listens on the socket.
  bool owns_file = true;
};

void Server::Impl::stop() {
  if (stopped) return;
  stopped = true;
  ErrorCode ignored;
  if (ports.front().acceptor.is_open() && bound.is_unix() && owns_file) ::unlink(bound.unix_path.c_str());
  for (auto& port : ports) port.acceptor.close(ignored);
  end_accept_pauses();
  sweep_timer.cancel();
  record_timer.cancel();
  connections.close_all();
}

void Server::Impl::end_accept_pauses() {
  for (auto& port : ports) port.vacancy.cancel();
}

void Server::Impl::spawn(Task<void> task) {
  net::spawn(executor, std::move(task), [self = shared_from_this()](const std::exception_ptr& failure) {
    self->end_accept_pauses();
    if (!failure || self->stopped) return;
    try {
      std::rethrow_exception(failure);
    } catch (...) {
      self->answering.note();
    }
  });
}

// Accepts connections. If there is no memory for a connection, closes the connection and pauses.
Task<void> Server::Impl::accept(ListeningPort& port) {
  const auto self = shared_from_this();
  ErrorCode ec;
  while (!stopped && !retired) {
    if (ec) {
      port.vacancy.expires_after(kAcceptPause);
      co_await port.vacancy.async_wait(use_task(ec));
    }
    try {
      net::Socket socket(executor);
      co_await port.acceptor.async_accept(socket, use_task(ec));
      if (stopped) break;
      if (!ec) spawn(serve(std::move(socket)));
      accepting.works();
    } catch (...) {
      accepting.note();
      ec = asio::error::no_memory;
    }
  }
}

// Calls `step` after each pause until stop(). An exception that `step` throws does not end the calls.
Task<void> Server::Impl::repeat(net::Timer& timer, base::Duration pause, Faults& faults,
                                void (Impl::*step)()) {
  const auto self = shared_from_this();
  while (!stopped) {
    try {
      (this->*step)();
      faults.works();
    } catch (...) {
      faults.note();
    }
    ErrorCode ec;
    timer.expires_after(pause);
    co_await timer.async_wait(use_task(ec));
  }
}

// Ends the waits of connections whose time limit has passed.
void Server::Impl::sweep() {
  connections.end_late();
}

// Records one step of the history for the dashboard.
void Server::Impl::record() {
  if (sources->now) recorder.record(*sources, sources->now());
}

base::Duration Server::Impl::sweep_pause() const {
  return std::min<base::Duration>(std::min(options.head_deadline, options.deadline) / 4,
                                  std::chrono::seconds(1));
}

Task<void> Server::Impl::serve(net::Socket socket) {
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

// Serves one request. Returns false if the connection must be closed afterwards.
Task<bool> Server::Impl::serve_one(Connection& connection, boost::beast::flat_buffer& buffer) {
  Parser parser;
  parser.header_limit(kMaxHead);
  parser.body_limit(kMaxBody);
  ErrorCode ec;
  co_await http::async_read_header(connection.socket, buffer, parser, use_task(ec));
  if (stopped) co_return false;
  connection.answers = true;
  std::optional<Answer> reply;
  if (ec)
    reply = fault_answer(ec);
  else
    reply = co_await answer(connection, buffer, parser);
  if (!reply || stopped) co_return false;
  connection.begin(options.deadline);
  // If a body was not read completely, the connection is closed after the response. Otherwise the rest of the
  // body would be read as the next request.
  const bool whole = !ec && parser.is_done();
  auto response = to_response(std::move(*reply), whole ? &parser : nullptr);
  if (retired) response.keep_alive(false);
  answering.works();
  const bool kept = co_await send(connection, std::move(response));
  connection.answers = false;
  co_return kept;
}

Task<Answer> Server::Impl::answer(Connection& connection, boost::beast::flat_buffer& buffer, Parser& parser) {
  if (auto fault = fault_of_host(parser)) co_return std::move(*fault);
  PageRequest question = question_of(parser, connection.socket);
  auto admitted = admit(admission, question);
  if (auto* refusal = std::get_if<Answer>(&admitted)) co_return std::move(*refusal);
  const Page& page = *std::get<const Page*>(admitted);
  question.has_token = admission.token.admits(question.authorization);
  question.is_operators = !fault_of_asker(admission, question);
  const auto read = sources;
  if (question.has_body) {
    connection.begin(options.deadline);
    auto fault = co_await read_body(connection, buffer, parser);
    if (fault) co_return std::move(*fault);
    question.body = parser.get().body();
  }
  connection.begin(options.deadline +
                   (page.patience != nullptr ? (*read).*page.patience : base::Duration{0}));
  if (const auto* handler = std::get_if<Page::Handler>(&page.handler))
    co_return unless_known((*handler)(*read, question), question);
  auto pending = std::get<Page::AsyncHandler>(page.handler)(*read, question, executor);
  auto reply = co_await std::move(pending);
  co_return unless_known(std::move(reply), question);
}

// Reads the body. Returns an error response, or nullopt if the body is complete.
Task<std::optional<Answer>> Server::Impl::read_body(Connection& connection, boost::beast::flat_buffer& buffer,
                                                    Parser& parser) {
  ErrorCode ec;
  if (boost::beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    const auto bytes = asio::buffer(kContinue);
    co_await asio::async_write(connection.socket, bytes, use_task(ec));
  }
  // From here on, exceeding the time limit causes a 408. Before this point, exceeding the limit closes the
  // connection, because the 408 could follow an incomplete 100 Continue.
  connection.reads_body = true;
  if (!ec) co_await http::async_read(connection.socket, buffer, parser, use_task(ec));
  connection.reads_body = false;
  co_return fault_of_body(ec, std::exchange(connection.late, false));
}

// Sends a response. Returns false if the connection must be closed.
Task<bool> Server::Impl::send(Connection& connection, Response response) {
  ErrorCode ec;
  co_await http::async_write(connection.socket, response, use_task(ec));
  if (ec || stopped) co_return false;
  if (response.keep_alive()) co_return true;
  co_await discard(connection);
  co_return false;
}

// Reads and discards input before the connection is closed. Closing with unread bytes would reset the
// connection, and the client could lose the response (RFC 9112 §9.6).
Task<void> Server::Impl::discard(Connection& connection) {
  ErrorCode ec;
  connection.socket.shutdown(asio::socket_base::shutdown_send, ec);
  std::array<char, 1024> bytes;
  const auto into_bytes = asio::buffer(bytes);
  std::size_t sum = 0;
  while (!ec && sum < kMaxDiscarded) {
    const std::size_t read = co_await connection.socket.async_read_some(into_bytes, use_task(ec));
    sum += read;
  }
}

base::Result<std::unique_ptr<Server>> Server::listen(asio::io_context& io, ServerOptions options,
                                                     Sources sources,
                                                     std::vector<net::ListeningSocket> inherited) {
  const bool is_first = inherited.empty();
  auto listening = is_first ? net::ListeningSocket::open_all(options.address)
                            : base::Result<std::vector<net::ListeningSocket>>(std::move(inherited));
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
  auto& impl = *impl_;
  for (auto& port : impl.ports) impl.spawn(impl.accept(port));
  impl.spawn(impl.repeat(impl.sweep_timer, impl.sweep_pause(), impl.sweeping, &Impl::sweep));
  impl.spawn(impl.repeat(impl.record_timer, Recorder::kStep, impl.recording, &Impl::record));
}

void Server::renew(Sources sources) {
  impl_->read_from(std::move(sources));
}

void Server::stop() {
  impl_->stop();
}

void Server::retire() {
  impl_->retired = true;
  for (auto& port : impl_->ports) net::close_acceptor(port.acceptor);
}

bool Server::is_answering() const noexcept {
  return impl_->connections.is_answering();
}

std::vector<int> Server::sockets() const {
  std::vector<int> sockets;
  for (auto& port : impl_->ports) sockets.push_back(port.acceptor.native_handle());
  return sockets;
}

const std::vector<base::Endpoint>& Server::addresses() const noexcept {
  return impl_->addresses;
}

const base::Endpoint& Server::bound() const noexcept {
  return impl_->bound;
}

}  // namespace weir::admin
