// A server of one thread on loopback. For each connection, it reads a request and sends a scripted answer.
#pragma once

#include "unit/net/credential.hpp"
#include "unit/net/sockets.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

namespace weir::fetch {

// A certificate for "localhost", and its PEM file.
class Localhost {
 public:
  Localhost() {
    std::string pattern = ::testing::TempDir() + "weir_fetch_XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    const std::unique_ptr<FILE, decltype(&std::fclose)> file(std::fopen(pem().c_str(), "w"), std::fclose);
    PEM_write_X509(file.get(), credential.certificate.get());
  }
  ~Localhost() { std::filesystem::remove_all(directory_); }
  Localhost(const Localhost&) = delete;
  Localhost& operator=(const Localhost&) = delete;

  [[nodiscard]] std::string pem() const { return directory_ + "/localhost.pem"; }
  const net::Credential credential = net::make_credential({{"CN", "localhost"}}, nullptr);

 private:
  std::string directory_;
};

class ScriptedServer {
 public:
  // `answer`: sent after each whole head of a request; empty: the server stays silent until the client
  // closes the connection. `tls`: serves with this certificate; null: without TLS.
  explicit ScriptedServer(std::string answer, const Localhost* tls = nullptr)
      : answer_(std::move(answer)), tls_(tls), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to connections that the client has closed
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.number(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.number(), 8), 0);
    ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_.number(), SHUT_RDWR);  // ends accept()
    thread_.join();
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::string url(const std::string& host = "localhost") const {
    return (tls_ != nullptr ? "https://" : "http://") + host + ":" + std::to_string(port_) + "/keys";
  }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] std::string last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }
  // Called on the server's thread when a request has arrived. Must be set before the request.
  std::function<void()> on_request = [] {};

 private:
  void serve() {
    for (;;) {
      const net::Descriptor connection(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
      if (connection.number() < 0) return;
      if (tls_ != nullptr)
        serve_tls(connection.number());
      else
        serve_one(
            [&](char* to, int most) { return static_cast<int>(::recv(connection.number(), to, most, 0)); },
            [&](const std::string& text) { net::send_all(connection.number(), text); });
    }
  }
  void serve_tls(int fd) {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                    SSL_CTX_free);
    SSL_CTX_use_certificate(context.get(), tls_->credential.certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), tls_->credential.key.get());
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
    SSL_set_fd(ssl.get(), fd);
    if (SSL_accept(ssl.get()) != 1) return;
    serve_one(
        [&](char* to, int most) { return SSL_read(ssl.get(), to, most); },
        [&](const std::string& text) { SSL_write(ssl.get(), text.data(), static_cast<int>(text.size())); });
    SSL_shutdown(ssl.get());
  }
  // Reads a request with its body. Then answers.
  template <class Receive, class Send>
  void serve_one(Receive receive, Send send) {
    std::string request;
    std::array<char, 4096> piece{};
    const auto is_whole = [&] {
      const auto end = request.find("\r\n\r\n");
      if (end == std::string::npos) return false;
      const auto length = request.find("Content-Length: ");
      const auto body = length < end ? std::stoul(request.substr(length + 16)) : 0;
      return request.size() >= end + 4 + body;
    };
    while (!is_whole()) {
      const int count = receive(piece.data(), static_cast<int>(piece.size()));
      if (count <= 0) return;
      request.append(piece.data(), static_cast<std::size_t>(count));
    }
    {
      const std::lock_guard lock(mutex_);
      last_request_ = request;
    }
    ++requests_;
    on_request();
    if (!answer_.empty()) return send(answer_);
    while (receive(piece.data(), static_cast<int>(piece.size())) > 0) {
    }
  }

  const std::string answer_;
  const Localhost* const tls_;
  net::Descriptor listener_;
  int port_ = 0;
  std::atomic<int> requests_{0};
  mutable std::mutex mutex_;
  std::string last_request_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace weir::fetch
