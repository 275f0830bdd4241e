#include "weir/ask/question.hpp"

#include "weir/http/described_head.hpp"

namespace weir::ask {

// Writes a head of HTTP/1.0 if the question names no host, because HTTP/1.1 requires a Host field.
std::optional<std::string> request_head(const Question& question) {
  const bool names_host = !question.host.empty() || http::has_field(question.headers, "host");
  return http::head_text({.method = question.method,
                          .target = question.target,
                          .host = question.host,
                          .fields = question.headers,
                          .minor_version = names_host ? 1U : 0U});
}

}  // namespace weir::ask
