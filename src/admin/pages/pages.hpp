// The pages of the admin listener by path and method. Each page is a line of the table in pages.cpp and a
// function in a file of its own.
#pragma once

#include "admin/pages/answer.hpp"

#include "weir/admin/sources.hpp"
#include "weir/net/asio.hpp"
#include "weir/net/task.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace weir::admin {

struct Page {
  // Handlers run on the server's thread. The request and the sources outlive the response. A coroutine must
  // finish within ServerOptions::deadline.
  using Say = Answer (*)(const Sources&, const PageRequest&);
  using Ask = net::Task<Answer> (*)(const Sources&, const PageRequest&, const net::Executor&);

  enum class For : std::uint8_t {
    Anybody,   // needs no token: for probes, which have none, and for pages without data
    Operator,  // needs the token if one is set
  };
  enum class Body : std::uint8_t { None, Json };  // the body that a request may have

  std::string_view path;
  std::string_view method;  // GET includes HEAD. POST, PUT and DELETE may change state; GET never does
  For whom;
  std::variant<Say, Ask> handler;
  Body body = Body::None;
  // The time that the response may take beyond ServerOptions::deadline; null: none.
  base::Duration Sources::*patience = nullptr;
};

// Returns the page with this path and method. If only the path exists, returns its first page; else null.
[[nodiscard]] const Page* find_page(std::string_view path, std::string_view method) noexcept;
[[nodiscard]] bool answers(const Page& page, std::string_view method) noexcept;
// Returns a list such as "GET, HEAD, DELETE".
[[nodiscard]] std::string methods_of(std::string_view path);

// Handlers that have a file of their own.
[[nodiscard]] net::Task<Answer> ask_reload(const Sources& sources, const PageRequest& question,
                                           const net::Executor& executor);
[[nodiscard]] net::Task<Answer> ask_upgrade(const Sources& sources, const PageRequest& question,
                                            const net::Executor& executor);
[[nodiscard]] net::Task<Answer> answer_explain(const Sources& sources, const PageRequest& question,
                                               const net::Executor& executor);
[[nodiscard]] net::Task<Answer> answer_keys(const Sources& sources, const PageRequest& question,
                                            const net::Executor& executor);

}  // namespace weir::admin
