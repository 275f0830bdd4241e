// Laws that hold for every session, whatever its client and its servers send (RFC 9112 §6.3, §8, §9.3):
//
//  1. Servers receive only HTTP. Each complete request that a server receives is a complete request of the
//     client.
//  2. A request that is not idempotent reaches a server at most once. Other requests are sent again if a kept
//     connection ends before their answer.
//  3. The client receives only HTTP, and at most one final answer for each request.
//  4. Each answer that is certainly complete was created by weir, or sent completely by a server.
//  5. When the client and its servers have disconnected, the session ends.
#pragma once

#include "unit/proxy/client/session_run.hpp"

#include "weir/http/chunked.hpp"
#include "weir/http/head_parser.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::proxy {

struct WholeRequest {
  std::string method, path, query, body;
  friend bool operator==(const WholeRequest&, const WholeRequest&) = default;
};
struct WholeAnswer {
  unsigned status = 0;
  std::string body;
  friend bool operator==(const WholeAnswer&, const WholeAnswer&) = default;
};

// The complete messages at the beginning of a stream. They end at the end of the stream or before the first
// malformed message.
template <class Message>
struct Messages {
  std::vector<Message> whole;
  bool faulty = false;       // the octets after the complete messages are not HTTP
  std::string_view rest{};   // octets after the complete messages
  bool last_closes = false;  // the last complete message says that the connection closes after it
};

// Removes the body at the front of `octets` and returns it. Returns nullopt if the body is incomplete, or if
// only the end of the connection marks its end. Sets `bad` to true if the body is malformed.
inline std::optional<std::string> take_body(std::string_view& octets, http::Framing framing,
                                            std::uint64_t length, http::ChunkDecoder::Sender sender,
                                            bool& bad) {
  if (framing == http::Framing::None) return std::string();
  if (framing == http::Framing::Length) {
    if (octets.size() < length) return std::nullopt;
    const std::string body(octets.substr(0, length));
    octets.remove_prefix(length);
    return body;
  }
  if (framing == http::Framing::UntilClose) return std::nullopt;
  std::string body;
  http::ChunkDecoder decoder(sender);
  for (auto rest = octets; !rest.empty();) {
    const auto piece = decoder.next(rest);
    rest.remove_prefix(piece.used);
    body += piece.data;
    bad = piece.status == http::ChunkDecoder::Status::Bad;
    if (bad) return std::nullopt;
    if (piece.status != http::ChunkDecoder::Status::Done) continue;
    octets = rest;
    return body;
  }
  return std::nullopt;
}

inline Messages<WholeRequest> requests_in(std::string_view octets) {
  Messages<WholeRequest> found;
  for (found.rest = octets; !found.last_closes;) {
    while (found.rest.starts_with("\r\n")) found.rest.remove_prefix(2);  // RFC 9112 §2.2: empty lines
    const auto size = http::find_head_end(found.rest);
    if (size == 0) {
      found.faulty = http::find_early_fault(found.rest).has_value();
      return found;
    }
    http::RequestHead head;
    if (http::parse_request_head(found.rest.substr(0, size), head)) {
      found.faulty = true;
      return found;
    }
    WholeRequest request{std::string(head.method), std::string(head.path), std::string(head.query), {}};
    auto behind = found.rest.substr(size);
    auto body = take_body(behind, head.framing, head.content_length, http::ChunkDecoder::Sender::Client,
                          found.faulty);
    if (!body) return found;
    request.body = std::move(*body);
    found.whole.push_back(std::move(request));
    found.last_closes = !head.keep_alive;
    found.rest = behind;
  }
  return found;
}

// Parses answers. `methods`: the methods of the answered requests, in order; further answers belong to GET.
// `ended`: the connection closes after the octets, which completes an answer without a length.
inline Messages<WholeAnswer> answers_in(std::string_view octets, const std::vector<std::string>& methods,
                                        bool ended) {
  Messages<WholeAnswer> found;
  for (found.rest = octets; !found.rest.empty();) {
    // A server may end lines with LF only; weir never does.
    const auto size = ended ? http::find_answer_head_end(found.rest) : http::find_head_end(found.rest);
    if (size == 0) {
      found.faulty = http::find_early_answer_fault(found.rest).has_value();
      return found;
    }
    const bool to_head = found.whole.size() < methods.size() && methods[found.whole.size()] == "HEAD";
    http::ResponseHead head;
    if (http::parse_response_head(found.rest.substr(0, size), to_head, head)) {
      found.faulty = true;
      return found;
    }
    auto behind = found.rest.substr(size);
    auto body = take_body(behind, head.framing, head.content_length, http::ChunkDecoder::Sender::Server,
                          found.faulty);
    if (!body && ended && head.framing == http::Framing::UntilClose)
      body = std::string(std::exchange(behind, {}));
    if (!body) return found;
    found.rest = behind;
    if (head.status >= 200) found.whole.push_back({head.status, std::move(*body)});
  }
  return found;
}

// Appends to `possible` each answer that a client may read from a server that sends `parts` and closes the
// connection after any of the parts.
inline void possible_answers(const std::vector<std::string>& parts, std::vector<WholeAnswer>& possible) {
  std::string octets;
  for (const auto& part : parts) {
    octets += part;
    for (const auto* method : {"GET", "HEAD"}) {
      const auto found = answers_in(octets, std::vector<std::string>(parts.size(), method), true);
      possible.insert(possible.end(), found.whole.begin(), found.whole.end());
    }
  }
}

// Runs the script. Returns the law that was broken, or nullptr if all laws hold.
[[nodiscard]] inline const char* broken_law(const SessionScript& script, const std::string& path) {
  SessionRun run(script, path);
  run.run();
  if (run.sessions() != 0) return "a session ends when its client and its servers have gone";

  const auto sent = requests_in(script.client);
  auto owed = sent.whole;
  for (const auto& octets : run.to_servers()) {
    const auto received = requests_in(octets);
    if (received.faulty) return "what reaches a server is HTTP";
    for (const auto& request : received.whole) {
      const auto at = std::find(owed.begin(), owed.end(), request);
      if (at == owed.end()) return "a request that is whole at a server was sent whole, and POST once";
      if (request.method == "POST") owed.erase(at);
    }
  }

  std::vector<std::string> methods;
  for (const auto& request : sent.whole) methods.push_back(request.method);
  auto answers = answers_in(run.to_client(), methods, false);
  // weir may also answer an incomplete last request. If its method was HEAD, the answer has no body. So tries
  // HEAD if the answers cannot be parsed otherwise.
  methods.emplace_back("HEAD");
  if (answers.faulty) answers = answers_in(run.to_client(), methods, false);
  if (answers.faulty) return "what reaches the client is HTTP";
  if (answers.whole.size() > sent.whole.size() + 1) return "a request has one answer";

  // Any of the script's answers may be the first answer on a server's connection. If an answer is truncated,
  // weir may take the next answer for the missing part.
  std::vector<WholeAnswer> possible;
  for (std::size_t first = 0; first < script.answers.size(); ++first) {
    const auto from = script.answers.begin() + static_cast<std::ptrdiff_t>(first);
    possible_answers({from, script.answers.end()}, possible);
  }
  for (const auto& answer : answers.whole) {
    const bool own = answer.body.starts_with("{\"error\":") || answer.body.empty();
    const bool told = std::find(possible.begin(), possible.end(), answer) != possible.end();
    if (!own && !told) return "an answer that is whole was sent whole by a server, or is weir's own";
  }
  return nullptr;
}

}  // namespace weir::proxy
