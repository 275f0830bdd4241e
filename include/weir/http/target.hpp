// Paths and hosts in the one form that rules compare and count by. What is forwarded is what came.
//
// Pure. A result is a view of the argument where that is normal already (no allocation), else of `scratch`,
// whose capacity is used again; it lives as long as both stand still. REQUIRES that the argument is no view
// of `scratch`.
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

// RFC 3986 §6.2.2 and a little more, so that one resource has one name: percent-encoded unreserved octets are
// decoded (once), other %xx are in upper case, a malformed % stays as it is; then each segment loses its
// ";parameters", slashes are merged and dot segments removed, never above the root. "%2F" stays; case and a
// trailing slash count. An empty path is "/"; a fragment is cut off; what does not begin with '/' ("*") comes
// back as it is.
//
// Parameters go before dot segments do: servers that know parameters take "/a/..;x/b" for "/b".
[[nodiscard]] std::string_view normalise_path(std::string_view raw, std::string& scratch);

// Lower case, without port and without the root's trailing dot; the brackets of an IPv6 literal stay.
[[nodiscard]] std::string_view normalise_host(std::string_view authority, std::string& scratch);

}  // namespace weir::http
