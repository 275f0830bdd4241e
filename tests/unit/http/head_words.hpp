// Describes a parsed head in words that tests compare.
#pragma once

#include "weir/http/head_parser.hpp"

#include <string>
#include <string_view>

namespace weir::http {

inline std::string framing_of(Framing framing, std::uint64_t length) {
  switch (framing) {
    case Framing::None:
      return "none";
    case Framing::Length:
      return std::to_string(length);
    case Framing::Chunked:
      return "chunked";
    case Framing::UntilClose:
      return "until-close";
  }
  return "?";
}

// Describes the result: "502", or "STATUS framing keep|close".
inline std::string response_verdict(std::string_view bytes, bool to_head = false) {
  ResponseHead head;
  if (const auto fault = parse_response_head(bytes, to_head, head)) return std::to_string(fault->status);
  return std::to_string(head.status) + " " + framing_of(head.framing, head.content_length) +
         (head.keep_alive ? " keep" : " close");
}

}  // namespace weir::http
