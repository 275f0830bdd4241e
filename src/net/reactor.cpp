#include "weir/net/reactor.hpp"

#include "weir/net/signal.hpp"

#include <cerrno>

#include <boost/asio/detail/epoll_reactor.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

namespace weir::net {

namespace {

using AsioReactor = asio::detail::epoll_reactor;

// The most calls of epoll_wait(2) in a turn of the loop. Each call returns up to 128 events to Asio's array.
constexpr int kMostCalls = 16;

// Asio has no function that returns its epoll descriptor. An explicit instantiation may name a private member
// ([temp.spec.general]).
template <int AsioReactor::*kMember>
struct PrivateMember {
  friend int epoll_of(const AsioReactor& reactor) noexcept { return reactor.*kMember; }
};
int epoll_of(const AsioReactor& reactor) noexcept;
template struct PrivateMember<&AsioReactor::epoll_fd_>;

int epoll_of(asio::execution_context& context) {
  auto& reactor = asio::use_service<AsioReactor>(context);
  reactor.init_task();  // Asio's loop waits for events from now on
  return epoll_of(reactor);
}

// The lowest bit of the data of an event is 1 if the event belongs to a Port. Asio stores addresses of
// aligned objects, so the bit of its events is 0.
constexpr std::uint64_t kPortBit = 1;
static_assert(alignof(Port) > kPortBit);

std::uint64_t data_of(const Port& port) noexcept {
  return reinterpret_cast<std::uintptr_t>(&port) | kPortBit;
}

// Returns null if the event belongs to Asio.
Port* port_of(const epoll_event& event) noexcept {
  if ((event.data.u64 & kPortBit) == 0) return nullptr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): made by data_of()
  return reinterpret_cast<Port*>(static_cast<std::uintptr_t>(event.data.u64 & ~kPortBit));
}

}  // namespace

Reactor::Reactor(asio::execution_context& context)
    : service(context),
      // weir's executor type is only used with io_context.
      // NOLINTNEXTLINE(cppcoreguidelines-pro-type-static-cast-downcast)
      executor_(static_cast<asio::io_context&>(context).get_executor()),
      epoll_(epoll_of(context)) {}

Reactor::~Reactor() = default;

Reactor& Reactor::of(const Executor& executor) {
  return asio::use_service<Reactor>(asio::query(executor, asio::execution::context));
}

void Reactor::end_tasks() noexcept {
  while (!roots_.empty()) roots_.front().frame.destroy();
}

// Destroys all waiting tasks when the io_context is destroyed. Destroying one task may destroy other tasks.
void Reactor::shutdown() {
  work_.reset();
  end_tasks();
}

int Reactor::control(Port& port, int operation, std::uint32_t events) noexcept {
  epoll_event event{};
  event.events = events | EPOLLET;
  event.data.u64 = data_of(port);
  return ::epoll_ctl(epoll_, operation, port.fd_, &event) == 0 ? 0 : errno;
}

int Reactor::add(Port& port) noexcept {
  ++ports_;
  const int error = control(port, EPOLL_CTL_ADD, EPOLLIN | EPOLLRDHUP);
  if (error == 0 && !work_) work_.emplace(executor_);
  return error;
}

// Makes epoll report when the socket becomes writable. If the socket is writable already, epoll reports this
// once.
int Reactor::report_room(Port& port) noexcept {
  return control(port, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
}

void Reactor::forget(Port& port) noexcept {
  epoll_event unused{};
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, port.fd_, &unused);
  if (--ports_ > 0 || !work_) return;
  // work_ is reset later, from the event loop. If it was the last work and was reset here, Asio would stop
  // the io_context even outside of run(). A later run() would then do nothing.
  asio::post(executor_, [this] {
    if (ports_ == 0) work_.reset();
  });
}

// Tells all reported ports their events before any handler of Asio or any coroutine runs. So no coroutine
// finds a port that knows less than another. If the kernel fills `events`, the kernel may have more events,
// so this function asks again. The number of calls is bounded, because Asio's timers wait until the
// coroutines of all reported ports have run.
int Reactor::wait_for_events(int epoll, epoll_event* events, int room, int timeout) noexcept {
  Reactor* reactor = nullptr;  // the reactor of all these ports, because each io_context has its own epoll
  int others = 0;
  for (int call = 0; call < kMostCalls && others < room; ++call) {
    const int count = ::epoll_wait(epoll, events + others, room - others, call == 0 ? timeout : 0);
    if (count < 0) return others > 0 ? others : count;
    const bool is_all = count < room - others;
    const int end = others + count;
    for (int i = others; i < end; ++i) {
      auto* const port = port_of(events[i]);
      if (port == nullptr) {
        events[others++] = events[i];
        continue;
      }
      port->note(events[i].events);
      reactor = &port->reactor_;
      reactor->keep(*port);
    }
    if (!is_all) continue;
    if (reactor != nullptr) ++reactor->polls_;
    break;
  }
  return others;
}

// Adds the port to reported_, and posts turn(), which resumes the port's coroutines. Coroutines must not run
// within Asio's wait, because they could close descriptors whose events Asio still has to handle. Asio calls
// posted functions before it waits again.
void Reactor::keep(Port& port) noexcept {
  if (port.is_linked()) return;  // an earlier call of epoll_wait(2) reported this port
  if (reported_.empty()) asio::post(executor_, [this] { turn(); });
  reported_.push_back(port);
}

void Reactor::turn() {
  while (!reported_.empty()) dispatch(reported_.front());
}

// Resumes one coroutine that waits for the events of this port. If there is none, removes the port from
// reported_. A resumed coroutine may destroy any Port object, even this one. A destroyed Port removes itself
// from reported_.
void Reactor::dispatch(Port& port) {
  if (const auto reader = Port::release(port.readable_, port.reader_)) return reader.resume();
  if (const auto writer = Port::release(port.writable_, port.writer_)) return writer.resume();
  port.unlink();
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
  if (unable_ != 0) readable_ = true;  // epoll does not accept the socket, so every read is tried at once
}

Port::~Port() {
  cancel();
  reactor_.forget(*this);
}

void Port::filled() noexcept {
  writable_ = broken_;
  if (reports_room_ || unable_ != 0) return;
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
