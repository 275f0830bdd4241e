// Paths and hosts in the one form that rules compare and count by. What is forwarded is what came.
//
// Pure. A result is a view of the argument where that is normal already (no allocation), else of `scratch`,
// whose capacity is used again; it lives as long as both stand still. REQUIRES that the argument is no view
// of `scratch`.
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

// RFC 3986 §6.2.2 and a little more, so that one resource has one name. Each octet is decoded, once, and
// written in one way: what a path may hold (pchar, §3.3) as it is, all else as %XX in upper case, a '%'
// without two digits as "%25", an encoded slash as "%2F". Then each segment loses its ";parameters" (or
// "%3B…"), slashes are merged and dot segments removed, never above the root. Case and a trailing slash
// count. An empty path is "/"; a fragment is cut off; what does not begin with '/' ("*") comes back as it is.
// A normal path is its own normal form.
//
// Parameters go before dot segments do: servers that know parameters take "/a/..;x/b" for "/b".
[[nodiscard]] std::string_view normalise_path(std::string_view raw, std::string& scratch);

// Only the octets written in the one way, and nothing removed.
[[nodiscard]] std::string path_spelling(std::string_view raw);

// Why no request may have this path, as a sentence for the client; null: it may. A backslash is a slash to
// browsers' URL parsers, and a NUL is the end to C.
[[nodiscard]] const char* path_fault(std::string_view raw) noexcept;

// Why servers disagree on the resource, so that its normal form alone is safe from none of them, as a
// sentence; null: they do not (http/path_readings.hpp finds what they read). A path_fault() is one; a dot
// segment with parameters is one to servers that know parameters alone; ".." behind an empty segment
// leaves another one where slashes are merged than where they are not; and "%2F", "%5C" or "%25" (to servers
// that decode twice) beside dots, in parameters or in a segment that ".." removes is a slash that rules do
// not see, where elsewhere a rule or route finds it in the normal form.
[[nodiscard]] const char* path_doubt(std::string_view raw) noexcept;

// Lower case, without port and without the root's trailing dot; the brackets of an IPv6 literal stay.
[[nodiscard]] std::string_view normalise_host(std::string_view authority, std::string& scratch);

// Whether it is uri-host [ ":" port ] (RFC 9110 §7.2), so that everybody finds the same host in it: an IPv6
// address in brackets, or a name without empty labels or anything encoded; a port up to 65535. Empty passes.
[[nodiscard]] bool valid_authority(std::string_view text) noexcept;

}  // namespace weir::http
