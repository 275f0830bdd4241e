#include "server/process/file_thread.hpp"

#include <exception>
#include <system_error>
#include <utility>

#include <boost/asio/post.hpp>

namespace weir::server {

FileThread::~FileThread() {
  if (thread_.joinable()) thread_.join();
}

void FileThread::run(std::function<void()> work, Done done) {
  jobs_.push_back({std::move(work), std::move(done)});
  if (jobs_.size() == 1) begin();
}

void FileThread::begin() {
  try {
    thread_ = std::thread([this, &work = jobs_.front().work] {
      std::string fault;
      try {
        work();
      } catch (const std::exception& error) {
        fault = error.what();
      }
      net::asio::post(control_, [this, fault] { end(fault); });
    });
  } catch (const std::system_error& error) {
    net::asio::post(control_,
                    [this, fault = std::string("cannot start a thread: ") + error.what()] { end(fault); });
  }
}

void FileThread::end(const std::string& fault) {
  if (thread_.joinable()) thread_.join();
  jobs_.front().done(fault);
  jobs_.pop_front();
  if (!jobs_.empty()) begin();
}

}  // namespace weir::server
