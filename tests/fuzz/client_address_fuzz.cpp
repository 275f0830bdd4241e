// Fuzzes X-Forwarded-For and Forwarded with any content. The client of an untrusted peer must be that peer
// itself. If a trusted proxy has appended its client's address, the result must be this address, whatever
// text precedes it.
#include "fuzz/input.hpp"

#include "weir/policy/identity/client_address.hpp"

#include <array>
#include <string>
#include <string_view>

namespace weir::fuzz {
namespace {

using policy::AddressField;

constexpr AddressField kFields[] = {AddressField::XForwardedFor, AddressField::Forwarded};
const auto kPeer = *base::IpAddress::parse("10.0.0.1");
const auto kStranger = *base::IpAddress::parse("203.0.113.7");
const std::array kTrusted{*base::Cidr::parse("10.0.0.0/8")};

http::Fields lines_of(std::string_view text, AddressField field) {
  const auto id = field == AddressField::Forwarded ? http::FieldId::Forwarded : http::FieldId::XForwardedFor;
  http::Fields fields;
  while (fields.size() < fields.capacity() - 1) {
    const auto end = text.find('\n');
    fields.push_back({"F", text.substr(0, end), id, false});
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return fields;
}

void check(std::string_view text, AddressField field) {
  auto fields = lines_of(text, field);
  require(client_address(kTrusted, field, kStranger, fields) == kStranger, "a stranger is itself");
  (void)client_address(kTrusted, field, kPeer, fields);

  // A proxy appends its client's address to the last line of the field, or adds a separate line.
  const bool forwarded = field == AddressField::Forwarded;
  const std::string own = forwarded ? R"(for=203.0.113.7;host="a,b;for=1.2.3.4\"")" : "203.0.113.7";
  const auto last = std::string(fields.back().value) + ", " + own;
  auto appended = fields;
  appended.back().value = last;
  require(client_address(kTrusted, field, kPeer, appended) == kStranger,
          "nothing hides what a proxy appends");
  fields.push_back({"F", own, fields.back().id, false});
  require(client_address(kTrusted, field, kPeer, fields) == kStranger, "nor a line of its own");
}

}  // namespace
}  // namespace weir::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  for (const auto field : weir::fuzz::kFields) weir::fuzz::check(text, field);
  return 0;
}
