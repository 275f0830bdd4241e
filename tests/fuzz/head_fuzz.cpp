// Fuzzes heads of requests and responses. Each part of an accepted head must lie within the bytes of the head
// and contain no line end.
#include "fuzz/input.hpp"

#include "weir/http/head_parser.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

using http::Framing;

struct Within {
  std::string_view bytes;

  void operator()(std::string_view view) const {
    require(view.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos,
            "no line ends within");
    if (view.empty()) return;
    require(view.data() >= bytes.data() && view.data() + view.size() <= bytes.data() + bytes.size(),
            "every view lies in the bytes");
  }
};

void check_fields(const http::Fields& fields, const Within& within) {
  for (const auto& field : fields) {
    require(!field.name.empty(), "every field has a name");
    require(field.name.find_first_of(" \t:") == std::string_view::npos, "names are tokens");
    within(field.name);
    within(field.value);
  }
}

void check_request(std::string_view bytes) {
  http::RequestHead head;
  if (const auto fault = parse_request_head(bytes, head))
    return require(fault->status >= 400 && fault->status < 600, "a fault has its answer");
  const Within within{bytes};
  for (const auto view : {head.method, head.target, head.authority, head.query}) within(view);
  // If a target in absolute form has no path, head.path is one of these two constants. They lie outside the
  // bytes of the head.
  if (head.path != "/" && head.path != "*") within(head.path);
  check_fields(head.fields, within);
  require(!head.method.empty() && !head.target.empty(), "a request asks for something");
  require(head.framing != Framing::UntilClose, "a request's body has an end");
  require(head.framing == Framing::Length || head.content_length == 0, "one framing alone");
  http::RequestHead again;
  require(!parse_request_head(bytes, again), "twice the same answer");
  for (std::size_t size = 0; size <= bytes.size(); size += 1 + bytes.size() / 64)
    require(!http::find_early_fault(bytes.substr(0, size)), "what becomes a head is waited for");
}

void check_response(std::string_view bytes, bool to_head) {
  http::ResponseHead head;
  if (parse_response_head(bytes, to_head, head)) return;
  const Within within{bytes};
  within(head.reason);
  check_fields(head.fields, within);
  require(head.status >= 100 && head.status < 1000, "a status has three digits");
  require(!to_head || head.framing == Framing::None, "HEAD has no body");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace weir;
  const std::string input(reinterpret_cast<const char*>(bytes), size);
  const auto end = http::find_head_end(input);
  fuzz::require(end <= size, "a head ends within the bytes");
  for (std::size_t from = 0; from < std::min<std::size_t>(size, 8); ++from)
    if (end > from + 4) fuzz::require(http::find_head_end(input, from) == end, "wherever the search goes on");
  const auto answer_end = http::find_answer_head_end(input);
  fuzz::require(answer_end <= size, "an answer's head ends within the bytes");
  fuzz::require(end == 0 || (answer_end != 0 && answer_end <= end),
                "an empty line ends an answer's head too");
  for (std::size_t from = 0; from < std::min<std::size_t>(size, 8); ++from)
    if (answer_end > from + 2)
      fuzz::require(http::find_answer_head_end(input, from) == answer_end, "wherever the search goes on");
  // Passes a copy of the head, so that a sanitizer finds reads beyond its end.
  if (end != 0) fuzz::check_request(input.substr(0, end));
  if (answer_end == 0) return 0;
  const std::string head = input.substr(0, answer_end);
  fuzz::check_response(head, false);
  fuzz::check_response(head, true);
  return 0;
}
