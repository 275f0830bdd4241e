// A thread that reads and writes files for the main thread, which answers health checks meanwhile.
#pragma once

#include "weir/net/asio.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <thread>

namespace weir::server {

// Runs one job after another. Program owns the object, which belongs to the main thread.
class FileThread {
 public:
  // `fault`: why the work failed; empty if it succeeded.
  using Done = std::function<void(const std::string& fault)>;

  // `control`: the event loop of the main thread, which must outlive this object.
  explicit FileThread(net::asio::io_context& control) : control_(control) {}
  ~FileThread();  // waits until the running work has ended
  FileThread(const FileThread&) = delete;
  FileThread& operator=(const FileThread&) = delete;

  // Runs `work` on the thread, and then `done` on the main thread. The work of the next job begins only after
  // `done` has returned. So `done` may change objects that the work of later jobs reads.
  void run(std::function<void()> work, Done done);
  // Returns the number of jobs that have not ended.
  [[nodiscard]] std::size_t size() const noexcept { return jobs_.size(); }

 private:
  struct Job {
    std::function<void()> work;
    Done done;
  };
  void begin();
  void end(const std::string& fault);

  net::asio::io_context& control_;
  std::deque<Job> jobs_;  // the first of them is running
  std::thread thread_;    // joinable while a job runs
};

}  // namespace weir::server
