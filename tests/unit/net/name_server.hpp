// A DNS server on 127.0.0.1, with the records that a test sets. Runs on the test's event loop.
#pragma once

#include "weir/base/endpoint.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/service_lookup.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/udp.hpp>

namespace weir::net {

class NameServer {
 public:
  explicit NameServer(asio::io_context& context)
      : socket_(context, {asio::ip::make_address("127.0.0.1"), 0}) {
    receive();
  }

  [[nodiscard]] base::Endpoint address() const { return {"127.0.0.1", socket_.local_endpoint().port(), {}}; }

  // From now on, the name has these addresses, IPv4 or IPv6. Without addresses, the name does not exist.
  void say(const std::string& name, const std::vector<std::string>& addresses, std::uint32_t ttl = 0) {
    names_.erase(name);
    for (const auto& text : addresses) {
      const auto address = asio::ip::make_address(text);
      if (address.is_v4())
        add(name, kA, ttl, as_text(address.to_v4().to_bytes()));
      else
        add(name, kAaaa, ttl, as_text(address.to_v6().to_bytes()));
    }
  }
  // Adds an alias of another name.
  void alias(const std::string& name, const std::string& target, std::uint32_t ttl) {
    add(name, kCname, ttl, labels(target));
  }
  // Adds an SRV record.
  void add_service(const std::string& name, const ServiceRecord& record, std::uint32_t ttl) {
    add(name, kSrv, ttl,
        number16(record.priority) + number16(record.weight) + number16(record.target.port) +
            labels(record.target.host));
  }
  // While the server is silent, it answers nothing.
  void be_silent(bool yes) { silent_ = yes; }
  // From now on, the server answers no question about this name.
  void ignore(const std::string& name) { ignored_ = name; }

  // Returns the names of the questions about IPv4 addresses so far.
  [[nodiscard]] const std::vector<std::string>& asked() const noexcept { return asked_; }

 private:
  static constexpr std::uint16_t kA = 1, kCname = 5, kAaaa = 28, kSrv = 33;
  static constexpr std::size_t kPointerToQuestion = 0xC00C;
  static constexpr std::size_t kHead = 12;  // length of the header of a message
  struct Record {
    std::uint16_t type;
    std::uint32_t ttl;
    std::string data;
  };

  template <class Bytes>
  static std::string as_text(const Bytes& bytes) {
    return {bytes.begin(), bytes.end()};
  }
  static std::string number16(std::size_t number) {
    return {static_cast<char>(number >> 8U), static_cast<char>(number)};
  }
  static std::string labels(std::string_view name) {
    std::string text;
    while (!name.empty()) {
      const auto label = name.substr(0, name.find('.'));
      text += static_cast<char>(label.size());
      text += label;
      name.remove_prefix(std::min(name.size(), label.size() + 1));
    }
    return text + '\0';
  }
  void add(const std::string& name, std::uint16_t type, std::uint32_t ttl, std::string data) {
    names_[name].push_back({type, ttl, std::move(data)});
  }

  void receive() {
    socket_.async_receive_from(asio::buffer(query_), peer_, [this](const ErrorCode& ec, std::size_t size) {
      if (ec) return;
      answer(std::string_view(query_.data(), size));
      receive();
    });
  }

  void answer(std::string_view query) {
    std::string name;
    auto at = kHead;
    for (; query[at] != 0; at += static_cast<unsigned char>(query[at]) + 1U)
      name += (name.empty() ? "" : ".") +
              std::string(query.substr(at + 1, static_cast<unsigned char>(query[at])));
    const auto type = static_cast<std::uint16_t>(query[at + 2]);
    const auto end = at + 5;
    if (type == kA) asked_.push_back(name);
    if (silent_ || name == ignored_) return;
    const bool exists = names_.contains(name);
    std::string records;
    std::size_t count = 0;
    append(name, type, number16(kPointerToQuestion), records, count);
    const std::string flags = exists ? "\x81\x80" : "\x81\x83";  // an answer: no error, or no such name
    const auto message = std::string(query.substr(0, 2)) + flags + number16(1) + number16(count) +
                         number16(0) + number16(0) + std::string(query.substr(kHead, end - kHead)) + records;
    socket_.send_to(asio::buffer(message), peer_);
  }

  // `owner`: `name` as encoded in the records: its labels, or a pointer to the name in the question.
  void append(const std::string& name, std::uint16_t type, const std::string& owner, std::string& records,
              std::size_t& count) {
    if (!names_.contains(name)) return;
    for (const auto& record : names_[name]) {
      if (record.type != type && record.type != kCname) continue;
      records += owner + number16(record.type) + number16(1) + number16(record.ttl >> 16U) +
                 number16(record.ttl & 0xFFFFU) + number16(record.data.size()) + record.data;
      ++count;
      if (record.type == kCname) append(target_of(record.data), type, record.data, records, count);
    }
  }
  static std::string target_of(std::string_view data) {
    std::string name;
    for (std::size_t at = 0; data[at] != 0; at += static_cast<unsigned char>(data[at]) + 1U)
      name +=
          (name.empty() ? "" : ".") + std::string(data.substr(at + 1, static_cast<unsigned char>(data[at])));
    return name;
  }

  asio::ip::udp::socket socket_;
  asio::ip::udp::endpoint peer_;
  std::array<char, 512> query_{};
  std::map<std::string, std::vector<Record>> names_;
  std::vector<std::string> asked_;
  bool silent_ = false;
  std::string ignored_;
};

}  // namespace weir::net
