// Makes each allocation of weir fail in turn while the codec serves a request.
#include "unit/http/http2/http2_client.hpp"
#include "unit/scarce_memory.hpp"

#include "weir/http/http2_session.hpp"

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include <gtest/gtest.h>

void* operator new(std::size_t size) {
  return weir::tests::take_memory(size);
}
// This operator never fails: if it failed, std::stable_sort would use an algorithm without extra memory.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return std::malloc(size);
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}

namespace weir::http {
namespace {

// Answers each request with a body and a trailer. Most of its callbacks allocate memory.
class Server final : public Http2Events, public Http2StreamEvents {
 public:
  Server() : session_(*this, {}) { trailers_.add("x-sum", std::string(100, '1')); }

  std::string answer(std::string_view octets) {
    EXPECT_TRUE(session_.receive(octets));
    EXPECT_EQ(text_.head(0), "GET / HTTP/1.1\r\nhost: a\r\nx-long: " + std::string(100, 'x') + "\r\n\r\n");
    Http2Fields fields;
    fields.add_status(200);
    session_.send_head(1, fields, true);
    std::string out;
    session_.write(out, 1 << 20);
    return out;
  }

 private:
  [[nodiscard]] Http2StreamEvents* on_stream(std::int32_t) override {
    opened_ = std::make_unique<int>(1);
    return this;
  }
  void on_cheap_frame(Http2CheapFrame) override { cheap_frames_.push_back(1); }
  void on_pong() override {}
  void on_failure() noexcept override {}
  void on_field(std::string_view name, std::string_view value) override { text_.add(name, value); }
  void on_head() override { opened_ = std::make_unique<int>(2); }
  void on_data(std::string_view) override {}
  void on_end() override { opened_ = std::make_unique<int>(3); }
  void on_end_sent() override {}
  void on_closed(Http2Error) override { opened_ = std::make_unique<int>(4); }
  [[nodiscard]] std::size_t give(char* at, std::size_t, bool& ended) noexcept override {
    *at = 'b';
    ended = true;
    return 1;
  }
  [[nodiscard]] const Http2Fields* trailers() const noexcept override { return &trailers_; }

  Http2RequestText text_{1000};
  Http2Fields trailers_;
  std::unique_ptr<int> opened_;
  std::vector<int> cheap_frames_;
  Http2Session session_;
};

TEST(Http2Memory, SessionReportsEachAllocationThatFails) {
  Http2Client client;
  client.request({{"x-long", std::string(100, 'x')}});
  const auto octets = client.take();
  std::string out;
  const int allocations = tests::fail_each_allocation(
      [&] {
        Server server;
        out = server.answer(octets);
      },
      [] {});
  EXPECT_GT(allocations, 12);
  ASSERT_TRUE(client.give(out));
  EXPECT_EQ(client.answers.at(1).body, "b");
  EXPECT_EQ(client.answers.at(1).heads, ":status=200\n\nx-sum=" + std::string(100, '1') + "\n\n");
}

}  // namespace
}  // namespace weir::http
