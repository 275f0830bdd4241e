// Normal forms of paths and hosts, which rules compare and count by. weir forwards them as received.
//
// Pure. A result is a view of the argument if that is already normal (no allocation), otherwise of `scratch`.
// It is valid as long as both stay unchanged. REQUIRES: the argument is not a view of `scratch`.
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

// Returns the normal form of a path, by RFC 3986 §6.2.2 and some more rules, so that a resource has one name.
// Each octet is decoded once, then written in one way. Octets that a path may contain (pchar, §3.3) are
// written as they are, all others as %XX in upper case. A '%' without two digits becomes "%25", an encoded
// slash "%2F". Then each segment loses its ";parameters" (or "%3B…"), slashes are merged, and dot segments
// are removed, never above the root. Case and a trailing slash matter. An empty path becomes "/". A fragment
// is cut off. A text that does not begin with '/' ("*") stays as it is. A normal path is its own normal form.
//
// Parameters are removed before dot segments: servers that know parameters read "/a/..;x/b" as "/b".
[[nodiscard]] std::string_view normalise_path(std::string_view raw, std::string& scratch);

// Returns the path with every octet written in one way, and nothing removed.
[[nodiscard]] std::string path_spelling(std::string_view raw);

// Returns why weir rejects this path, as a sentence for the client; null if it does not. Browsers' URL
// parsers read a backslash as a slash, and C programs end a text at a NUL.
[[nodiscard]] const char* path_fault(std::string_view raw) noexcept;

// Returns why servers disagree about the resource of this path, as a sentence; null if they agree. The
// normal form alone is then unsafe (http/path_interpretations.hpp finds the other interpretations). The
// reasons are:
// * path_fault();
// * a dot segment with parameters, which only some servers know;
// * ".." after an empty segment, which removes different segments before and after slashes are merged;
// * "%2F", "%5C" or (for servers that decode twice) "%25" beside dots, in parameters, or in a segment that
//   ".." removes. There it is a slash that rules do not see. Elsewhere rules find it in the normal form.
[[nodiscard]] const char* path_warning(std::string_view raw) noexcept;

// Returns the host in lower case, without its port and trailing dot. An IPv6 literal keeps its brackets.
[[nodiscard]] std::string_view normalise_host(std::string_view authority, std::string& scratch);

// Returns true if the text is empty or a valid uri-host [ ":" port ] (RFC 9110 §7.2). The host is an IPv6
// address in brackets, or a name without empty labels and percent-encoding. The port is at most 65535. So all
// readers find the same host in it.
[[nodiscard]] bool valid_authority(std::string_view text) noexcept;

}  // namespace weir::http
