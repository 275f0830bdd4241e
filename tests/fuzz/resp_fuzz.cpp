// Fuzzes replies of Redis, valid or not. The result must be the same whether a reply arrives whole or in
// pieces, and memory must stay bounded.
#include "fuzz/input.hpp"
#include "redis/connection/resp.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace weir::fuzz {
namespace {

using Next = redis::ReplyReader::Next;

struct Parsed {
  std::vector<std::string> replies;
  bool malformed = false;
  bool operator==(const Parsed&) const = default;
};

std::string text_of(const redis::Reply& reply) {
  std::string text = std::to_string(static_cast<int>(reply.kind)) + reply.text;
  for (const auto number : reply.numbers) text += " " + std::to_string(number);
  for (const auto& word : reply.words) text += " " + word;
  return text;
}

Parsed parse(std::string_view input, std::size_t cut) {
  redis::ReplyReader reader;
  Parsed all;
  for (std::size_t at = 0; at < input.size() && !all.malformed; at += cut) {
    const std::string piece(input.substr(at, cut));
    reader.feed(piece);
    for (auto next = reader.next(); next != Next::Incomplete; next = reader.next()) {
      all.malformed = next == Next::Malformed;
      if (all.malformed) break;
      all.replies.push_back(text_of(reader.reply()));
    }
  }
  return all;
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir::fuzz;
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  const auto whole = parse(input, std::max<std::size_t>(input.size(), 1));
  require(parse(input, 1) == whole, "byte by byte the same");
  require(parse(input, std::size_t{bytes[0]} + 1) == whole, "in pieces the same");
  return 0;
}
