// Checks the laws of session_laws.hpp on random sessions: complete and damaged pieces of requests and
// answers, in random order. tests/fuzz/session_fuzz.cpp searches for more cases.
#include "unit/proxy/client/session_laws.hpp"

#include <array>
#include <random>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace weir::proxy {
namespace {

using Random = std::mt19937_64;

constexpr std::string_view kRequests[] = {
    "GET /a HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD /b?c HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "PUT /e HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "POST /f HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nxyz",
    "GET http://a/g HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /h HTTP/1.0\r\n\r\n",
    "POST /i HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET /j HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    "\r\n",
};
constexpr std::string_view kAnswers[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.0 200 OK\r\n\r\nuntil the end",
    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nend",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nmore than two",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
};

std::size_t below(Random& random, std::size_t bound) {
  return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random);
}

// Returns some of the messages as one text. In half of the calls, an octet is changed or dropped, or the end
// is missing.
template <std::size_t N>
std::string some_of(const std::string_view (&messages)[N], Random& random) {
  std::string text;
  for (auto count = below(random, 4) + 1; count > 0; --count) text += messages[below(random, N)];
  const auto at = below(random, text.size());
  switch (below(random, 6)) {
    case 0:
      text[at] = static_cast<char>(below(random, 256));
      break;
    case 1:
      text.erase(at, 1);
      break;
    case 2:
      text.resize(at);
      break;
    default:
      break;
  }
  return text;
}

SessionScript random_script(Random& random) {
  SessionScript script;
  script.client = some_of(kRequests, random);
  for (auto count = below(random, 4); count > 0; --count) script.answers.push_back(some_of(kAnswers, random));
  constexpr std::array<std::size_t, 4> kPieces{1, 7, 64, 1 << 20};
  script.client_piece = kPieces[below(random, kPieces.size())];
  script.server_piece = kPieces[below(random, kPieces.size())];
  return script;
}

TEST(SessionLaws, SendsOnlyValidHttpAndAtMostOneResponsePerRequest) {
  const auto seed = std::random_device{}();
  Random random(seed);
  const auto path = ::testing::TempDir() + "weir-session-laws-" + std::to_string(::getpid());
  for (int round = 0; round < 400; ++round) {
    const auto script = random_script(random);
    const auto* broken = broken_law(script, path);
    std::string answers;
    for (const auto& answer : script.answers) answers += "\n-- answer\n" + answer;
    ASSERT_EQ(broken, nullptr) << broken << "; seed " << seed << ", round " << round
                               << "\n-- client, in pieces of " << script.client_piece << "\n"
                               << script.client << answers;
  }
}

}  // namespace
}  // namespace weir::proxy
