// Asio's library body, compiled once (BOOST_ASIO_SEPARATE_COMPILATION).
//
// Asio's loop calls Reactor::wait_for_events() where it would call epoll_wait(2). So one epoll serves Asio's
// descriptors and the sockets of the reactor, and a turn of the loop takes one system call
// (docs/design/event-loop.md).
#include "weir/net/reactor.hpp"

#include <sys/epoll.h>

#define epoll_wait ::weir::net::Reactor::wait_for_events
#include <boost/asio/impl/src.hpp>
#undef epoll_wait
#include <boost/asio/ssl/impl/src.hpp>
