// The client side of a question: gives the exchange the request that the question describes, and keeps the
// refusal that the exchange writes. An exchange over this stream decides with the same code as for any other
// request. QuestionExchange owns the stream.
#pragma once

#include "proxy/client/client_stream.hpp"

#include "weir/ask/question.hpp"
#include "weir/http/head_parser.hpp"
#include "weir/net/byte_reader.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace weir::proxy {

class QuestionStream final : public ClientStream, private net::ByteReader {
 public:
  // `asker`: the connection over which the question came. Must outlive the decision, but not this object.
  QuestionStream(ClientStream& asker, ClientWatch& watch, ask::Question question);

  // Parses the head of the described request. Returns the fault for which weir would reject that request;
  // nullopt if the head is good. `head` must outlive the exchange.
  [[nodiscard]] std::optional<http::Fault> read_head(http::RequestHead& head);
  // Must be called after the decision. From then on this object does not use the asker, which may be
  // destroyed.
  void forget_asker() noexcept { asker_ = nullptr; }

  // The refusal, or another answer that weir wrote instead of a decision.
  struct Refusal {
    unsigned status = 0;  // 0: weir wrote no answer
    std::string fields{};
    std::string content_type{};
    std::string body{};
  };
  [[nodiscard]] Refusal& refusal() noexcept { return refusal_; }
  // Returns true if the asker has disconnected.
  [[nodiscard]] bool has_asker_disconnected() const noexcept {
    return asker_ != nullptr && asker_->watch.has_disconnected();
  }

  [[nodiscard]] const ask::Question* question() const noexcept override { return &question_; }
  [[nodiscard]] bool is_secure() const noexcept override { return question_.secure; }
  // Returns the name of the listener on which the question came.
  [[nodiscard]] std::string_view listener_name() const noexcept override { return asker_->listener_name(); }
  [[nodiscard]] std::string_view certificate() override { return {}; }
  [[nodiscard]] std::optional<http::ConnectionEnds> ends() const override { return std::nullopt; }
  [[nodiscard]] std::size_t head_size() const noexcept override { return head_text_.size(); }
  [[nodiscard]] bool can_answer() const noexcept override { return true; }
  [[nodiscard]] std::optional<net::ErrorCode> try_answer(http::Answer answer) override;
  [[nodiscard]] net::Task<net::ErrorCode> finish_answer() override;

  // The functions below have no meaning for a question, because weir does not forward it.
  [[nodiscard]] net::Task<net::ErrorCode> send_continue() override;
  [[nodiscard]] net::Task<net::ErrorCode> send_interim(const http::ResponseHead& head) override;
  [[nodiscard]] BodySink& begin_answer(const http::ResponseHead& head,
                                       const AnswerAdditions& additions) override;
  [[nodiscard]] std::size_t unacknowledged() const noexcept override { return 0; }
  void cut_answer() noexcept override {}
  [[nodiscard]] net::Task<net::ErrorCode> send_upgrade(const http::ResponseHead& head,
                                                       std::string_view protocol,
                                                       std::string_view fields) override;
  [[nodiscard]] Octets octets() noexcept override;
  void cancel() noexcept override {}
  void close() noexcept override {}

 private:
  [[nodiscard]] net::Task<std::size_t> read_some(char* at, std::size_t size, net::ErrorCode& ec) override;

  ask::Question question_;
  ClientPeer client_;
  ClientStream* asker_;    // null after the decision
  std::string head_text_;  // the head to which the exchange's views point
  Inbox inbox_;            // always empty
  BodySource source_;      // always empty
  Refusal refusal_;
};

}  // namespace weir::proxy
