// The pages of the admin listener. Each page is a line of the table in pages.cpp, with a path, a method and a
// handler function in its own file.
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
  // The types of handlers, which run on the server's thread. The request and the sources stay valid until the
  // response was sent. A handler that is a coroutine must finish within ServerOptions::deadline.
  using Handler = Answer (*)(const Sources&, const PageRequest&);
  using AsyncHandler = net::Task<Answer> (*)(const Sources&, const PageRequest&, const net::Executor&);

  enum class Access : std::uint8_t {
    Anybody,   // the page needs no token, because probes have none and some pages show no data
    Operator,  // the page needs the token if one is set
  };
  enum class Body : std::uint8_t { None, Json };  // the body that a request for the page may have

  std::string_view path;
  // GET also allows HEAD. POST, PUT, PATCH and DELETE may change state; GET never does.
  std::string_view method;
  Access access;
  std::variant<Handler, AsyncHandler> handler;
  Body body = Body::None;
  // Points to the member of Sources that holds additional time for the handler, beyond
  // ServerOptions::deadline. Null: no additional time.
  base::Duration Sources::*patience = nullptr;
};

// Returns the page with this path and method. If no page has both, returns the first page with this path;
// null if there is none.
[[nodiscard]] const Page* find_page(std::string_view path, std::string_view method) noexcept;
// Returns true if the page allows this method.
[[nodiscard]] bool answers(const Page& page, std::string_view method) noexcept;
// Returns the methods of all pages with this path, such as "GET, HEAD, DELETE".
[[nodiscard]] std::string methods_of(std::string_view path);

// Handlers that are defined in a source file of their own.
[[nodiscard]] net::Task<Answer> ask_reload(const Sources& sources, const PageRequest& question,
                                           const net::Executor& executor);
[[nodiscard]] net::Task<Answer> ask_upgrade(const Sources& sources, const PageRequest& question,
                                            const net::Executor& executor);
[[nodiscard]] net::Task<Answer> answer_explain(const Sources& sources, const PageRequest& question,
                                               const net::Executor& executor);
[[nodiscard]] net::Task<Answer> answer_keys(const Sources& sources, const PageRequest& question,
                                            const net::Executor& executor);
[[nodiscard]] Answer list_api_keys(const Sources& sources, const PageRequest& question);
[[nodiscard]] net::Task<Answer> set_api_key(const Sources& sources, const PageRequest& question,
                                            const net::Executor& executor);
[[nodiscard]] net::Task<Answer> remove_api_key(const Sources& sources, const PageRequest& question,
                                               const net::Executor& executor);

[[nodiscard]] Answer list_servers(const Sources& sources, const PageRequest& question);
[[nodiscard]] Answer change_server(const Sources& sources, const PageRequest& question);

}  // namespace weir::admin
