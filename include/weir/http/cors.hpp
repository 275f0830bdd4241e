// Cross-origin resource sharing (CORS): which pages of other origins may read answers. Follows the Fetch
// standard, §3.3. A browser hides an answer from a page of another origin unless fields of the answer permit
// the page to read it. Pure.
#pragma once

#include "weir/base/result.hpp"
#include "weir/base/time.hpp"
#include "weir/http/head.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace weir::http {

struct CorsSettings {
  std::vector<std::string> origins;  // in the form that browsers send, such as "https://app.example.com"
  bool any_origin = false;           // true: pages of every origin may read answers; `origins` is then empty
  // true: pages may also read answers to requests with cookies or other credentials
  bool credentials = false;
  base::Duration max_age{600'000'000};  // how long a browser may remember the answer to a preflight
  bool answers_preflights = false;      // false: weir forwards preflights to the server
  std::string key_field{};              // the field with the client's API key; empty: no field has it
  friend bool operator==(const CorsSettings&, const CorsSettings&) = default;
};

// Returns the origin in the form that browsers send: lower case, no path, no default port. The error says
// what is wrong, and what to write instead.
[[nodiscard]] base::Result<std::string> parse_origin(std::string_view text);

// Returns the value of the request's Origin field if pages of that origin may read the answer. Otherwise
// returns an empty text.
[[nodiscard]] std::string_view permitted_origin(const CorsSettings& cors, const Fields& request) noexcept;

// Returns true for a preflight: a browser asks whether a page of a permitted origin may send a request.
// Browsers send preflights without a body, and without Authorization, Cookie, the API key, and fields that
// override the method (Fetch standard, "CORS-preflight fetch"). So a request with a body or with one of these
// fields is no preflight.
[[nodiscard]] bool is_preflight(const CorsSettings& cors, const RequestHead& request) noexcept;

// The three functions below append field lines to `lines`, each with its CRLF. `lines` must already hold all
// other field lines that weir adds to the answer.

// Used for an answer that weir itself creates. Permits pages of permitted origins to read the status, the
// body and the fields in `lines`.
void append_cors_fields(std::string& lines, const CorsSettings& cors, const Fields& request);
// Used for the answer to a preflight. Permits the method and the fields that the preflight names.
void append_preflight_fields(std::string& lines, const CorsSettings& cors, const RequestHead& request);
// Used for an answer of a server. The server itself decides which pages may read the answer. Permits pages of
// permitted origins to read the fields in `lines`, too. Appends nothing if `lines` is empty.
void append_exposed_names(std::string& lines, const CorsSettings& cors, const Fields& request);

}  // namespace weir::http
