#include "weir/log/access_log.hpp"

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include <boost/json.hpp>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::log {
namespace {

namespace fs = std::filesystem;

class AccessLogTest : public ::testing::Test {
 protected:
  AccessLogTest() {
    std::string name = (fs::temp_directory_path() / "weir-access-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~AccessLogTest() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string file() const { return folder_ / "access.log"; }

  [[nodiscard]] std::vector<std::string> lines_of_file() const {
    std::ifstream in(file());
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  // Returns a function that stores the log's messages in said_. The test must destroy the log before it reads
  // said_.
  [[nodiscard]] AccessLog::Report report() {
    return [this](const std::string& line) { said_.push_back(line); };
  }

  fs::path folder_;
  std::vector<std::string> said_;
  net::asio::io_context io_;
  observe::Counters counters_{{}};
};

observe::AccessRecord record_of(std::string_view target) {
  observe::AccessRecord record;
  record.method = "GET";
  record.target = target;
  record.status = 200;
  return record;
}

// Reads from the pipe until all its writing ends are closed. REQUIRES: a writing end was opened before.
std::string read_to_end(int pipe) {
  std::string text;
  std::array<char, 65536> buffer;
  while (true) {
    const auto n = ::read(pipe, buffer.data(), buffer.size());
    if (n == 0) return text;
    if (n > 0)
      text.append(buffer.data(), static_cast<std::size_t>(n));
    else
      std::this_thread::yield();
  }
}

TEST_F(AccessLogTest, WritesEveryLineInOrder) {
  constexpr int kLines = 2000;  // enough for several batches
  {
    AccessLog log(file(), report());
    AccessLogLines lines(log, io_.get_executor(), counters_);
    for (int i = 0; i < kLines; ++i) lines.record(record_of("/" + std::to_string(i)));
  }
  const auto written = lines_of_file();
  ASSERT_EQ(written.size(), kLines);
  for (int i = 0; i < kLines; ++i)
    EXPECT_EQ(boost::json::parse(written[i]).at("target").as_string(), "/" + std::to_string(i));
  EXPECT_EQ(counters_.access_log_dropped.value(), 0U);
}

TEST_F(AccessLogTest, AppendsLinesToAnExistingFile) {
  std::ofstream(file()) << "before\n";
  {
    AccessLog log(file(), report());
    AccessLogLines lines(log, io_.get_executor(), counters_);
    lines.record(record_of("/after"));
  }
  const auto written = lines_of_file();
  ASSERT_EQ(written.size(), 2U);
  EXPECT_EQ(written[0], "before");
  EXPECT_THAT(written[1], ::testing::HasSubstr("/after"));
}

TEST_F(AccessLogTest, SingleBufferedLineIsWrittenWhenTheFlushTimerFires) {
  AccessLog log(file(), report());
  AccessLogLines lines(log, io_.get_executor(), counters_);
  lines.record(record_of("/first"));
  io_.run();  // returns when the flush timer has expired
  io_.restart();
  lines.record(record_of("/second"));
  io_.run();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (lines_of_file().size() < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(lines_of_file().size(), 2U);
}

TEST_F(AccessLogTest, DropsAndCountsLinesWithoutBlockingIfThePipeIsFull) {
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  const int reader = ::open(file().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  constexpr std::size_t kBatches = 4;
  std::uint64_t recorded = 0;
  auto log = std::make_unique<AccessLog>(file(), report(), observe::LogFields::usual(), kBatches);
  {
    AccessLogLines lines(*log, io_.get_executor(), counters_);
    // Nobody reads from the pipe, so the pipe and then the queue become full. The loop ends, because record()
    // never blocks.
    while (counters_.access_log_dropped.value() == 0) {
      lines.record(record_of("/full"));
      ++recorded;
    }
  }
  std::string read;
  std::jthread draining([&] { read = read_to_end(reader); });
  log.reset();  // writes the queued lines and closes the pipe, so that the reader ends
  draining.join();
  ::close(reader);
  const auto written = static_cast<std::uint64_t>(std::count(read.begin(), read.end(), '\n'));
  EXPECT_EQ(written + counters_.access_log_dropped.value(), recorded);
  EXPECT_GT(written, 0U);
}

TEST_F(AccessLogTest, CountsLinesLostToAFullDiskAndReportsTheErrorOnce) {
  constexpr int kLines = 2000;  // enough for several batches
  auto log = std::make_unique<AccessLog>("/dev/full", report());
  {
    AccessLogLines lines(*log, io_.get_executor(), counters_);
    for (int i = 0; i < kLines; ++i) lines.record(record_of("/lost"));
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (log->lost() < kLines && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(log->lost(), kLines);
  log.reset();
  EXPECT_THAT(said_, ::testing::ElementsAre(::testing::HasSubstr(
                         "access log: cannot write /dev/full: No space left on device")));
}

TEST_F(AccessLogTest, CreatesNoFileIfTheLogIsOff) {
  AccessLog log("off", report());
  EXPECT_FALSE(log.is_on());
  AccessLogLines lines(log, io_.get_executor(), counters_);
  lines.record(record_of("/"));
  lines.flush();
  EXPECT_FALSE(fs::exists("off"));
  EXPECT_EQ(counters_.access_log_dropped.value(), 0U);
}

TEST_F(AccessLogTest, CheckOfTheFileNeitherCreatesNorChangesTheFile) {
  for (const auto* target : {"-", "off"}) EXPECT_EQ(AccessLog::fault_of(target), "");
  EXPECT_EQ(AccessLog::fault_of(file()), "");
  EXPECT_FALSE(fs::exists(file()));
  std::ofstream(file()) << "a line\n";
  EXPECT_EQ(AccessLog::fault_of(file()), "");
  EXPECT_EQ(fs::file_size(file()), 7);
  EXPECT_EQ(AccessLog::fault_of(folder_), folder_.string() + " cannot be opened: Is a directory");
  EXPECT_EQ(AccessLog::fault_of(folder_ / "none" / "a"),
            (folder_ / "none" / "a").string() + " cannot be opened: No such file or directory");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(AccessLog::fault_of(folder_ / "pipe"), "");
}

TEST_F(AccessLogTest, ErrorNamesAFileThatCannotBeOpened) {
  try {
    const AccessLog log("/proc/no/such/access.log", report());
    FAIL() << "the log opened the file";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("/proc/no/such/access.log"));
  }
}

}  // namespace
}  // namespace weir::log
