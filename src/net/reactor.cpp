#include "weir/net/reactor.hpp"

#include "weir/net/signal.hpp"

#include <system_error>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace weir::net {

namespace {

constexpr int kManyEvents = 4;
constexpr int kLooks = 4;

int new_epoll() {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) throw std::system_error(errno, std::system_category(), "epoll_create1");
  return fd;
}

}  // namespace

Reactor::Reactor(asio::execution_context& context)
    : service(context),
      // weir's executor type is only used with io_context.
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-static-cast-downcast)
      executor_(static_cast<asio::io_context&>(context).get_executor()),
      epoll_(executor_, new_epoll()) {}

Reactor::~Reactor() = default;

Reactor& Reactor::of(const Executor& executor) {
  return asio::use_service<Reactor>(asio::query(executor, asio::execution::context));
}

void Reactor::end_tasks() noexcept {
  while (!roots_.empty()) roots_.front().frame.destroy();
}

// Destroys all waiting tasks when the io_context is destroyed. Destroying one task may destroy other tasks.
void Reactor::shutdown() {
  end_tasks();
  ErrorCode ignored;
  epoll_.close(ignored);
}

ErrorCode Reactor::control(Port& port, int operation, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.ptr = &port;
  if (::epoll_ctl(epoll_.native_handle(), operation, port.fd_, &event) == 0) return {};
  return {errno, boost::system::system_category()};
}

ErrorCode Reactor::add(Port& port) noexcept {
  ++ports_;
  const auto ec = control(port, EPOLL_CTL_ADD, EPOLLIN | EPOLLRDHUP);
  if (!ec && !watching_) watch();
  return ec;
}

// Also reports the socket if it has become writable since the last write.
ErrorCode Reactor::report_room(Port& port) noexcept {
  return control(port, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
}

void Reactor::forget(Port& port) noexcept {
  if (epoll_.is_open()) {
    epoll_event unused{};
    ::epoll_ctl(epoll_.native_handle(), EPOLL_CTL_DEL, port.fd_, &unused);
  }
  for (int i = dispatched_; i < fetched_; ++i)
    if (events_[static_cast<std::size_t>(i)].data.ptr == &port)
      events_[static_cast<std::size_t>(i)].data.ptr = nullptr;
  if (--ports_ == 0 && watching_) {
    ErrorCode ignored;
    epoll_.cancel(ignored);
  }
}

// Waits for events. Waits again after each batch while at least one Port exists. Without a Port there must be
// no wait, so that io_context::run() returns when there is no work.
void Reactor::watch() {
  watching_ = true;
  epoll_.async_wait(asio::posix::descriptor_base::wait_read, [this](const ErrorCode& ec) {
    watching_ = false;
    if (!ec) turn();
    if (ports_ > 0 && !watching_) watch();
  });
}

// Handles the events that have arrived. First tells all ports, so that no resumed coroutine finds a port that
// knows less than another. If there were many events, calls epoll_wait again, because under load new events
// arrive while the old ones are handled. That costs one system call, where another turn of Asio's loop
// costs three. The number of calls is bounded, because Asio's timers wait until turn() returns.
void Reactor::turn() {
  const auto room = static_cast<int>(events_.size());
  for (int look = 0; look < kLooks; ++look) {
    fetched_ = ::epoll_wait(epoll_.native_handle(), events_.data(), room, 0);
    if (fetched_ < room) ++looks_;  // otherwise some ports have not heard yet
    for (int i = 0; i < fetched_; ++i) {
      const auto& event = events_[static_cast<std::size_t>(i)];
      static_cast<Port*>(event.data.ptr)->note(event.events);
    }
    for (dispatched_ = 0; dispatched_ < fetched_; ++dispatched_)
      dispatch(events_[static_cast<std::size_t>(dispatched_)]);
    if (fetched_ < kManyEvents) return;
  }
}

// Resumes the coroutines that wait for this event. A resumed coroutine may destroy any Port object, including
// the one of this event. forget() then sets the pointer in the event of the destroyed object to null.
void Reactor::dispatch(const epoll_event& event) {
  auto* const port = static_cast<Port*>(event.data.ptr);
  if (port == nullptr) return;
  if (const auto frame = Port::release(port->readable_, port->reader_)) frame.resume();
  if (event.data.ptr == nullptr) return;
  if (const auto frame = Port::release(port->writable_, port->writer_)) frame.resume();
}

void Reactor::resume_soon(Suspended& waiter) noexcept {
  ready_.push_back(waiter);
  if (ready_posted_) return;
  ready_posted_ = true;
  asio::post(executor_, [this] { run_ready(); });
}

void Reactor::run_ready() {
  ready_posted_ = false;
  detail::AutoList<Suspended> ready;
  ready.swap(ready_);
  while (!ready.empty()) {
    const auto frame = ready.front().frame_;
    ready.pop_front();
    frame.resume();
  }
}

Port::Port(Reactor& reactor, int fd) : reactor_(reactor), fd_(fd), unable_(reactor.add(*this)) {
  if (unable_) readable_ = true;  // epoll does not accept the socket, so every read is tried at once
}

Port::~Port() {
  cancel();
  reactor_.forget(*this);
}

void Port::filled() noexcept {
  writable_ = broken_;
  if (reports_room_ || unable_) return;
  reports_room_ = true;
  unable_ = reactor_.report_room(*this);
}

void Port::note(std::uint32_t events) noexcept {
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) broken_ = true;
  if ((events & EPOLLRDHUP) != 0 || broken_) hung_up_ = true;
  if ((events & EPOLLIN) != 0 || hung_up_) readable_ = true;
  if ((events & EPOLLOUT) != 0 || broken_) writable_ = true;
}

std::coroutine_handle<> Port::release(bool ready, Wait* waiter) noexcept {
  if (!ready || waiter == nullptr) return nullptr;
  waiter->leave();
  return waiter->frame_;
}

void Port::abort(Wait* waiter) noexcept {
  if (waiter == nullptr) return;
  waiter->leave();
  waiter->result_ = asio::error::operation_aborted;
  reactor_.resume_soon(*waiter);
}

void Port::cancel() noexcept {
  abort(reader_);
  abort(writer_);
}

void Signal::Wait::await_suspend(std::coroutine_handle<> caller) noexcept {
  frame_ = caller;
  signal_.waiter_ = this;
}

void Signal::raise() noexcept {
  if (std::exchange(raised_, true) || waiter_ == nullptr) return;
  reactor_.resume_soon(*std::exchange(waiter_, nullptr));
}

void Readiness::end(const ErrorCode& result) noexcept {
  auto* const waiter = waiter_;
  if (waiter == nullptr) return;
  waiter->leave();
  waiter->result_ = result;
  reactor_.resume_soon(*waiter);
}

void Notification::end(const ErrorCode& result) noexcept {
  auto* const waiter = std::exchange(waiter_, nullptr);
  if (waiter == nullptr) return;
  waiter->result_ = result;
  reactor_.resume_soon(*waiter);
}

}  // namespace weir::net
