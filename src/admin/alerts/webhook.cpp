#include "admin/alerts/webhook.hpp"

#include "weir/http/status_reader.hpp"
#include "weir/net/use_task.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <vector>

namespace weir::admin {

namespace {

constexpr const char* kLate = "no response in time";
constexpr std::chrono::milliseconds kLookEvery{20};

std::string request(const Webhook& hook, const std::string& body) {
  std::string text = "POST " + hook.target + " HTTP/1.1\r\nHost: " + hook.address.to_string() +
                     "\r\nUser-Agent: weir\r\nContent-Type: application/json\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\nConnection: close\r\n";
  if (!hook.authorization.empty()) text += "Authorization: " + hook.authorization + "\r\n";
  return text + "\r\n" + body;
}

// Returns true if another attempt would get the same status: 3xx and 4xx, except 408, 425 and 429, with which
// a busy receiver asks for a later attempt.
bool is_hopeless(unsigned status) {
  return status >= 300 && status < 500 && status != 408 && status != 425 && status != 429;
}

}  // namespace

void Post::on_late() noexcept {
  late_ = true;
  pause_.cancel();
  if (dial_ != nullptr) dial_->cancel();
  if (stream_) stream_->cancel();
}

net::Task<Post::End> Post::send(const Webhook& hook, SSL_CTX* tls, base::Duration timeout,
                                const std::string& body) {
  late_ = false;
  late_fault_ = "the DNS lookup timed out";
  arm(timeout);
  auto end = co_await attempt(hook, tls, timeout, body);
  disarm();
  stream_.reset();
  if (late_ && !end.fault.empty()) end.fault = late_fault_;
  co_return end;
}

net::Task<net::ErrorCode> Post::connect(net::Dial::Target target, base::Duration timeout,
                                        std::string& fault) {
  net::Dial dial(executor_, watchdog_, target, timeout);
  const net::Dial::ScopedCancelTarget held(dial_, dial);
  const auto ec = co_await dial.connect();
  stream_ = dial.take();
  fault = std::move(dial.fault());
  co_return ec;
}

// Waits until the look-up ends, but at most `patience`. Returns an empty text if an address is known,
// otherwise the reason why none is known.
net::Task<std::string> Post::look_up(const base::Endpoint& address, base::Duration patience) {
  lookup_.begin(address);
  const auto until = std::chrono::steady_clock::now() + patience;
  while (lookup_.is_under_way() && !late_ && std::chrono::steady_clock::now() < until) {
    pause_.expires_after(kLookEvery);
    net::ErrorCode ended;
    co_await pause_.async_wait(net::use_task(ended));
    if (ended) break;
  }
  if (!lookup_.known().empty()) co_return std::string();
  if (lookup_.is_under_way()) co_return "the DNS lookup timed out";
  co_return "the DNS lookup failed: " + lookup_.fault();
}

net::Task<Post::End> Post::attempt(const Webhook& hook, SSL_CTX* tls, base::Duration timeout,
                                   const std::string& body) {
  const bool is_name = net::is_name(hook.address);
  std::string unknown;
  if (is_name) unknown = co_await look_up(hook.address, timeout / 2);
  if (late_) co_return End{late_fault_};  // the deadline passed during the look-up
  if (!unknown.empty()) co_return End{std::move(unknown)};
  const auto numeric =
      is_name ? base::Result<std::vector<net::RawEndpoint>>{lookup_.known()} : net::resolve(hook.address);
  if (!numeric) co_return End{numeric.error().message};
  const auto& addresses = *numeric;
  net::Dial::Target target{.addresses = addresses};
  if (tls != nullptr) target.tls.emplace(net::TlsTarget{tls, hook.address.host});
  std::string fault;
  late_fault_ = "no connection in time";
  const auto unconnected = co_await connect(target, timeout, fault);
  if (unconnected) co_return End{fault.empty() ? "no connection: " + unconnected.message() : fault};
  const auto text = request(hook, body);
  late_fault_ = "sending the message timed out";
  const auto unsent = co_await stream_->write(text);
  if (unsent) co_return End{"the connection broke before the message was sent: " + unsent.message()};
  late_fault_ = kLate;
  unsigned status = 0;
  auto unanswered = co_await read_status(status);
  if (!unanswered.empty()) co_return End{.fault = std::move(unanswered), .may_have_taken = true};
  if (status >= 200 && status < 300) co_return End{};
  co_return End{"it returned " + std::to_string(status), is_hopeless(status)};
}

// Reads the status of the final response into `status`. Returns an empty text on success, otherwise the
// reason of the failure.
net::Task<std::string> Post::read_status(unsigned& status) {
  http::StatusReader answer;
  std::size_t read = 0;
  while (true) {
    std::array<char, 2048> piece;
    net::ErrorCode ec;
    const auto count = co_await stream_->read_some(piece.data(), piece.size(), ec);
    read += count;
    const auto state = answer.feed({piece.data(), count});
    if (state == http::StatusReader::State::Faulty) co_return "its response is not HTTP";
    if (state == http::StatusReader::State::Known) {
      status = answer.status();
      co_return std::string();
    }
    if (!ec) continue;
    const std::string when = read == 0 ? "before a response" : "during the response";
    if (ec == net::asio::error::eof) co_return "it closed the connection " + when;
    co_return "the connection broke " + when + ": " + ec.message();
  }
}

}  // namespace weir::admin
