// Tests the message of `weir reload` when the running weir is still reading its configuration.
#include "weir/cli/reload_command.hpp"

#include "unit/admin/served_admin.hpp"

#include <gmock/gmock.h>

namespace weir::cli {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

class ReloadCommandTest : public admin::ServerTest {};

TEST_F(ReloadCommandTest, CommandExitsWithCode3AndPointsToTheLogIfTheReloadIsUnfinished) {
  sources_.reload = [](const std::string&, const admin::ReloadDone&) {};
  sources_.longest_reload = std::chrono::milliseconds(1);
  begin();
  testing::internal::CaptureStderr();
  EXPECT_EQ(run_reload({.address = server_->bound(), .token = {}}), 3);
  const auto said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr(": The reload is not finished yet"));
  EXPECT_THAT(said, EndsWith("the log will show the result.\n"));
}

}  // namespace
}  // namespace weir::cli
