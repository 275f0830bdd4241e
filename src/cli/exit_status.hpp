// Exit codes of weir's commands.
#pragma once

namespace weir::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;  // the command was valid but failed
inline constexpr int kWrong = 2;   // the command line or the configuration is invalid

}  // namespace weir::cli
