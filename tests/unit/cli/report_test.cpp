#include "cli/report.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

namespace weir::cli {
namespace {

std::string client_keys(const char* reply) {
  return client_keys_report(boost::json::parse(reply).as_object());
}

TEST(ClientKeysReport, ControlCharactersInClientKeysAreEscaped) {
  EXPECT_EQ(client_keys(R"({"keys":[{"id":"sha256:1","user":"\u001b[2Jann\n","tier":"pro"}]})"),
            "sha256:1: user \\x1B[2Jann\\x0A, tier pro\n");
  EXPECT_EQ(client_keys(R"({"key":{"id":"sha256:1","org":"a\u007f"},"created":true,"warnings":["b\r"]})"),
            "added sha256:1: org a\\x7F\nwarning: b\\x0D\n");
}

}  // namespace
}  // namespace weir::cli
