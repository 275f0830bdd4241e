// The pages of the admin listener: which path and method is answered by whom. A page is a line of the table
// in pages.cpp and a function in a file of its own.
#pragma once

#include "admin/pages/answer.hpp"

#include "weir/admin/sources.hpp"
#include "weir/net/asio.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace weir::admin {

struct Page {
  // On the server's thread. The question and the sources outlive the answer; who waits does so on that
  // thread, for less than ServerOptions::deadline.
  using Say = Answer (*)(const Sources&, const Question&);
  using Ask = net::Awaitable<Answer> (*)(const Sources&, const Question&);

  enum class For : std::uint8_t {
    Anybody,   // asks for no token: probes, which carry none, and what holds no data
    Operator,  // asks for the token where one is set
  };
  enum class Body : std::uint8_t { None, Json };  // what a request may bring

  std::string_view path;
  std::string_view method;  // GET, which is HEAD as well; POST, PUT or DELETE may change something, GET never
  For whom;
  std::variant<Say, Ask> handler;
  Body body = Body::None;
  // How long its answer may take beyond ServerOptions::deadline; null: no longer.
  base::Duration Sources::*patience = nullptr;
};

// Null where there is no such path; of its methods the one that was asked for, or the first.
[[nodiscard]] const Page* find_page(std::string_view path, std::string_view method) noexcept;
[[nodiscard]] bool answers(const Page& page, std::string_view method) noexcept;
// "GET, HEAD, DELETE"
[[nodiscard]] std::string methods_of(std::string_view path);

// Handlers that have a file of their own.
[[nodiscard]] net::Awaitable<Answer> ask_reload(const Sources& sources, const Question& question);
[[nodiscard]] net::Awaitable<Answer> ask_upgrade(const Sources& sources, const Question& question);
[[nodiscard]] net::Awaitable<Answer> answer_explain(const Sources& sources, const Question& question);
[[nodiscard]] net::Awaitable<Answer> answer_keys(const Sources& sources, const Question& question);

}  // namespace weir::admin
