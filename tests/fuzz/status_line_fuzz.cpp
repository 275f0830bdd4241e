// Fuzzes responses to health checks and webhooks. The status must not depend on how the response is cut into
// pieces. weir must stop reading an endless response within a bound.
#include "fuzz/input.hpp"

#include "weir/http/status_reader.hpp"

#include <algorithm>
#include <string_view>

namespace weir::fuzz {
namespace {

using http::StatusReader;

struct Heard {
  StatusReader::State state = StatusReader::State::Wanting;
  unsigned status = 0;
  bool operator==(const Heard&) const = default;
};

Heard heard(std::string_view answer, std::size_t piece) {
  StatusReader reader;
  Heard result;
  while (!answer.empty() && result.state == StatusReader::State::Wanting) {
    result.state = reader.feed(answer.substr(0, piece));
    answer.remove_prefix(std::min(piece, answer.size()));
  }
  if (result.state == StatusReader::State::Known) result.status = reader.status();
  return result;
}

void run(std::string_view input) {
  if (input.empty()) return;
  const auto answer = input.substr(1);
  const auto whole = heard(answer, std::max<std::size_t>(answer.size(), 1));
  require(whole.state != StatusReader::State::Known || (whole.status >= 200 && whole.status <= 999),
          "a status is final and has three digits");
  require(answer.size() < StatusReader::kMost || whole.state != StatusReader::State::Wanting,
          "an answer without end is given up");
  // A response that arrives in pieces may be rejected earlier than the whole response. But if both are
  // accepted, their statuses must be equal.
  for (const auto piece : {std::size_t{1}, std::size_t{static_cast<unsigned char>(input[0])} + 1}) {
    const auto cut = heard(answer, piece);
    if (whole.state == StatusReader::State::Known)
      require(cut == whole, "in pieces the same status");
    else
      require(cut.state != StatusReader::State::Known, "in pieces no other answer");
  }
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  weir::fuzz::run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}
