#include "weir/base/host.hpp"

#include <gtest/gtest.h>

namespace weir::base {
namespace {

TEST(Host, HostWhoseLastLabelIsANumberMustBeAValidIpv4Address) {
  for (const std::string_view host : {"256.1.1.1", "1.2.3", "1.2.3.4.5", "80", "a.80", "0x7f.1", "0X7F",
                                      "1.2.3.0x", "01.2.3.4", "1.2.3.4."})
    EXPECT_TRUE(is_false_ipv4(host)) << host;
  for (const std::string_view host : {"127.0.0.1", "0.0.0.0", "::1", "::ffff:1.2.3.4", "a", "a.b", "4.a",
                                      "1a", "a.x7", "localhost.", "", "."})
    EXPECT_FALSE(is_false_ipv4(host)) << host;
}

}  // namespace
}  // namespace weir::base
