// Tests the thread that works on files for the main thread.
#include "server/process/file_thread.hpp"

#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace weir::server {
namespace {

class FileThreadTest : public ::testing::Test {
 protected:
  // Runs the event loop until all jobs have ended.
  void finish() {
    while (thread_.size() != 0) ASSERT_EQ(control_.run_one_for(std::chrono::seconds(20)), 1u);
  }
  FileThread::Done note(const std::string& name) {
    return [this, name](const std::string& fault) { ended_.push_back(name + fault); };
  }

  net::asio::io_context control_{1};
  net::asio::executor_work_guard<net::Executor> work_{control_.get_executor()};
  FileThread thread_{control_};
  std::vector<std::string> ended_;
};

TEST_F(FileThreadTest, MainThreadContinuesWhileAJobRuns) {
  std::promise<void> release;
  thread_.run([&] { release.get_future().wait(); }, note("slow"));
  net::asio::post(control_, [&] {
    EXPECT_EQ(thread_.size(), 1u) << "the job still works";
    ended_.emplace_back("main");
    release.set_value();
  });
  finish();
  EXPECT_EQ(ended_, (std::vector<std::string>{"main", "slow"}));
}

TEST_F(FileThreadTest, JobStartsAfterTheCallbackOfThePreviousJob) {
  int value = 0;
  std::vector<int> read;
  for (int i = 0; i < 3; ++i)
    thread_.run([&] { read.push_back(value); }, [&](const std::string&) { ++value; });
  EXPECT_EQ(thread_.size(), 3u);
  finish();
  EXPECT_EQ(read, (std::vector<int>{0, 1, 2}));
}

TEST_F(FileThreadTest, CallbackMayAddAJob) {
  thread_.run([] {}, [this](const std::string&) { thread_.run([] {}, note("second")); });
  finish();
  EXPECT_EQ(ended_, std::vector<std::string>{"second"});
}

TEST_F(FileThreadTest, ExceptionIsReportedAndTheNextJobRuns) {
  thread_.run([] { throw std::runtime_error(" failed"); }, note("first"));
  thread_.run([] {}, note("second"));
  finish();
  EXPECT_EQ(ended_, (std::vector<std::string>{"first failed", "second"}));
}

}  // namespace
}  // namespace weir::server
