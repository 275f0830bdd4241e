// Normal forms of paths and hosts. Rules compare normal forms and use them in keys. weir forwards paths and
// hosts as received.
//
// Pure. If the argument is already normal, the result is a view of the argument, and nothing is allocated.
// Otherwise the result is a view of `scratch`. The view is valid as long as the argument and `scratch` stay
// unchanged. REQUIRES: the argument is not a view of `scratch`.
#pragma once

#include <string>
#include <string_view>

namespace weir::http {

// Returns the normal form of a path: RFC 3986 §6.2.2 and some more rules, so that each resource has one name.
// The normal form of a normal path is the same path. The steps:
// 1. Decodes each octet once and writes it in one way. Octets that a path may contain (pchar, §3.3) are
//    written as they are, all other octets as %XX in upper case. A '%' without two digits becomes "%25", an
//    encoded slash "%2F".
// 2. Removes the ";parameters" (or "%3B…") of each segment. This comes before step 4, because servers that
//    know parameters read "/a/..;x/b" as "/b".
// 3. Merges slashes.
// 4. Removes dot segments, never above the root.
//
// Case and a trailing slash are significant. An empty path becomes "/". A fragment is removed. A text that
// does not begin with '/' ("*") stays as it is.
[[nodiscard]] std::string_view normalise_path(std::string_view raw, std::string& scratch);

// Returns true if the path consists of letters, digits and other octets that have one meaning for all
// servers, and if no dot or slash follows a slash. A plain path is its own normal form and has no other
// interpretation, and path_fault() and path_warning() return null for it. Most requests have a plain path.
[[nodiscard]] bool is_plain_path(std::string_view raw) noexcept;

// Returns the path with each octet written as in the normal form: as itself if a path may contain it,
// otherwise as %XX. Removes nothing.
[[nodiscard]] std::string path_spelling(std::string_view raw);

// Returns why weir rejects this path, as a sentence for the client. Returns null if weir accepts it.
// Backslashes are rejected because URL parsers of browsers read them as slashes. NULs are rejected because C
// programs end a text there.
[[nodiscard]] const char* path_fault(std::string_view raw) noexcept;

// Returns why servers disagree about the resource of this path, as a sentence. Returns null if servers agree.
// If they disagree, the normal form alone is unsafe (http/path_interpretations.hpp finds the other
// interpretations). The reasons are:
// * path_fault() returns a fault;
// * a dot segment has parameters, which only some servers know;
// * ".." follows an empty segment, so it removes another segment if slashes are merged first;
// * "%2F", "%5C" or "%25" (as in "%252F") is next to dots, in parameters, or in a segment that ".." removes.
//   Servers that decode such octets once or twice find a slash in these places that rules do not see. In
//   other places, the normal form keeps the octets, so rules see them.
[[nodiscard]] const char* path_warning(std::string_view raw) noexcept;

// Returns the host in lower case, without its port and trailing dot. An IPv6 literal keeps its brackets.
[[nodiscard]] std::string_view normalise_host(std::string_view authority, std::string& scratch);

// Returns the host, which is a view of the argument, if the authority is a name in lower case without final
// dot, alone or with a port. Otherwise returns an empty text. Most authorities are of this form, which is
// valid and normal. For them, this function costs less than valid_authority() and normalise_host().
[[nodiscard]] std::string_view plain_host(std::string_view authority) noexcept;

// Returns true if the text is empty or a valid uri-host [ ":" port ] (RFC 9110 §7.2). The host must be an
// IPv6 address in brackets, or a name without empty labels or percent-encoding. The port must be at most
// 65535. So all servers find the same host in a valid text.
[[nodiscard]] bool valid_authority(std::string_view text) noexcept;

}  // namespace weir::http
