// `weir echo`: an upstream server for demos and tests. The path of a request chooses the response:
//
//   /headers       the received request head, as text
//   /status/503    an empty response with status 503
//   anything else  {"method":…,"target":…}, or the request's body if there is one
//
// With --grpc, the server speaks gRPC instead (cli/grpc_echo.hpp).
#include "cli/grpc_echo.hpp"

#include "weir/cli/commands.hpp"
#include "weir/http/answer.hpp"
#include "weir/http/forwarding.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/net/listener.hpp"
#include "weir/net/stream.hpp"
#include "weir/net/use_task.hpp"
#include "weir/observe/json_text.hpp"
#include "weir/proxy/http1_sink.hpp"
#include "weir/proxy/relay.hpp"
#include "weir/server/signals.hpp"

#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

namespace weir::cli {

namespace {

constexpr std::size_t kBlock = 64 << 10;

class EchoSession {
 public:
  EchoSession(net::Stream stream, net::Executor executor, base::Duration delay)
      : stream_(std::move(stream)), pause_(executor), delay_(delay), blocks_(kBlock), inbox_(blocks_) {}

  [[nodiscard]] net::Task<void> run() {
    for (;;) {
      const auto size = co_await head_size();
      if (size == 0) co_return;
      inbox_.make_room_behind(size);
      const auto head = inbox_.unread().substr(0, size);
      inbox_.use_and_pin(size);
      if (http::parse_request_head(head, head_)) co_return;
      if (delay_.count() > 0) {
        pause_.expires_after(delay_);
        net::ErrorCode ignored;
        co_await pause_.async_wait(net::use_task(ignored));
      }
      const bool answered = co_await answer(head);
      if (!answered || !head_.keep_alive) co_return;
      inbox_.unpin();
    }
  }

 private:
  [[nodiscard]] net::Task<std::size_t> head_size() {
    for (std::size_t searched = 0;;) {
      const auto size = http::find_head_end(inbox_.unread(), searched);
      if (size != 0) co_return size <= kBlock / 2 ? size : 0;
      searched = inbox_.unread().size();
      net::ErrorCode ec;
      char* at = inbox_.space();
      if (inbox_.room() == 0) co_return 0;
      const auto count = co_await stream_.read_some(at, inbox_.room(), ec);
      if (ec) co_return 0;
      inbox_.received(count);
    }
  }

  [[nodiscard]] net::Task<bool> answer(std::string_view head) {
    out_.clear();
    if (head_.framing != http::Framing::None) co_return co_await send_back();
    body_.clear();
    unsigned status = 200;
    const auto path = head_.path;
    if (path == "/headers") {
      body_ = head;
    } else if (path.starts_with("/status/")) {
      std::from_chars(path.data() + 8, path.data() + path.size(), status);
      if (status < 200 || status > 599) status = 400;
    } else {
      body_ += "{\"method\":";
      observe::append_json_text(body_, head_.method);
      body_ += ",\"target\":";
      observe::append_json_text(body_, head_.target);
      body_ += "}\n";
    }
    out_ += "HTTP/1.1 ";
    http::append_number(out_, status);
    out_ += ' ';
    out_ += http::reason_phrase(status);
    out_ += path == "/headers" ? "\r\nContent-Type: text/plain\r\nContent-Length: "
                               : "\r\nContent-Type: application/json\r\nContent-Length: ";
    http::append_number(out_, body_.size());
    out_ += head_.keep_alive ? "\r\n\r\n" : "\r\nConnection: close\r\n\r\n";
    if (head_.method != "HEAD") out_ += body_;
    const auto ec = co_await stream_.write(out_);
    co_return !ec;
  }

  [[nodiscard]] net::Task<bool> send_back() {
    out_ +=
        head_.expects_continue ? "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" : "HTTP/1.1 200 OK\r\n";
    if (const auto* type = http::find_field(head_.fields, http::FieldId::ContentType)) {
      out_ += "Content-Type: ";
      out_ += type->value;
      out_ += "\r\n";
    }
    if (head_.framing == http::Framing::Chunked) {
      out_ += "Transfer-Encoding: chunked\r\n\r\n";
    } else {
      out_ += "Content-Length: ";
      http::append_number(out_, head_.content_length);
      out_ += "\r\n\r\n";
    }
    proxy::BodySource body(stream_, inbox_, head_.framing, head_.content_length);
    proxy::Http1Sink sink(stream_, head_.framing, out_);
    proxy::Relay relay(body, sink);
    auto need = relay.advance();
    while (need == proxy::Relay::Need::Bytes || need == proxy::Relay::Need::Room) {
      const auto ec = co_await relay.wait(need);
      if (ec) co_return false;
      need = relay.advance();
    }
    co_return need == proxy::Relay::Need::Nothing;
  }

  net::Stream stream_;
  net::Timer pause_;
  base::Duration delay_;
  proxy::BlockPool blocks_;
  proxy::Inbox inbox_;
  http::RequestHead head_;
  std::string out_;
  std::string body_;
};

net::Task<void> serve(std::unique_ptr<EchoSession> session) {
  co_await session->run();
}

constexpr std::chrono::milliseconds kAcceptPause{20};

net::Task<void> accept_all(net::AcceptorSocket& acceptor, net::Executor executor,
                           const EchoOptions& options) {
  net::Timer pause(executor);
  for (;;) {
    net::Socket socket(executor);
    net::ErrorCode ec;
    co_await acceptor.async_accept(socket, net::use_task(ec));
    if (ec == net::asio::error::operation_aborted) co_return;
    if (ec) {  // usually no file descriptor is left; some may become free during the pause
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(net::use_task(ec));
      continue;
    }
    const int fd = socket.release(ec);
    net::Stream stream(executor, fd);
    auto connection = options.grpc
                          ? serve_grpc(std::move(stream), executor, options.delay)
                          : serve(std::make_unique<EchoSession>(std::move(stream), executor, options.delay));
    net::spawn(executor, std::move(connection), [](const std::exception_ptr&) {});
  }
}

void serve_on(net::asio::io_context& context, net::ListeningSocket listening, const EchoOptions& options) {
  auto acceptor = std::move(listening).into_acceptor(context.get_executor());
  net::spawn(context.get_executor(), accept_all(acceptor, context.get_executor(), options),
             [](const std::exception_ptr&) {});
  context.run();
}

}  // namespace

int run_echo(const EchoOptions& options) {
  auto first = net::ListeningSocket::open(options.listen);
  if (!first) {
    std::fprintf(stderr, "weir echo: %s\n", first.error().message.c_str());
    return 1;
  }
  std::vector<std::unique_ptr<net::asio::io_context>> contexts;
  std::vector<std::thread> threads;
  std::vector<net::ListeningSocket> sockets;
  for (unsigned i = 1; i < options.workers; ++i) {
    auto another = first->again();
    if (!another) {
      std::fprintf(stderr, "weir echo: %s\n", another.error().message.c_str());
      return 1;
    }
    sockets.push_back(std::move(*another));
  }
  net::asio::io_context control(1);
  server::Signals signals(control.get_executor(), {SIGINT, SIGTERM});
  std::fprintf(stderr, "weir echo listening on %s\n", first->address().to_string().c_str());
  sockets.push_back(std::move(*first));
  for (auto& socket : sockets) {
    contexts.push_back(std::make_unique<net::asio::io_context>(1));
    auto& context = *contexts.back();
    threads.emplace_back([&context, listening = std::move(socket), &options]() mutable {
      serve_on(context, std::move(listening), options);
    });
  }
  signals.listen([&](int) {
    for (const auto& context : contexts) context->stop();
    control.stop();
  });
  control.run();
  for (auto& thread : threads) thread.join();
  return 0;
}

}  // namespace weir::cli
