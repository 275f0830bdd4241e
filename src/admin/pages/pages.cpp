#include "admin/pages/pages.hpp"

#include "admin/pages/static.hpp"
#include "admin/pages/top.hpp"

#include "weir/observe/json_value.hpp"

#include <algorithm>
#include <array>

#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;

Answer answer_health(const Sources&, const PageRequest&) {
  return {.status = 200, .body = "ok\n", .content_type = "text/plain; charset=utf-8"};
}

Answer answer_readiness(const Sources& sources, const PageRequest& question) {
  const Readiness now = sources.readiness ? sources.readiness() : Readiness{true, {}};
  json::object body{{"ready", now.ready}};
  if (!now.detail.empty()) body["detail"] = now.detail;
  if (!now.cause.empty() && question.is_operators) body["cause"] = now.cause;
  return {.status = now.ready ? 200U : 503U, .body = observe::json_text(body)};
}

// Returns 200 even if the token is wrong, and says so in the body. Browsers would log a 401 as an error of
// the dashboard.
Answer answer_access(const Sources&, const PageRequest& question) {
  return {.status = 200, .body = observe::json_text(json::object{{"admitted", question.has_token}})};
}

Answer answer_metrics(const Sources& sources, const PageRequest&) {
  return {.status = 200,
          .body = metrics_text(sources),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

Answer answer_rules(const Sources& sources, const PageRequest&) {
  return {.status = 200, .body = rules_json(sources)};
}

Answer answer_overview(const Sources& sources, const PageRequest&) {
  return {.status = 200, .body = overview_json(sources)};
}

Answer answer_history(const Sources& sources, const PageRequest&) {
  return {.status = 200, .body = history_json(sources)};
}

Answer answer_file(const Sources&, const PageRequest& question) {
  const StaticFile* const file = find_static(path_of(question));
  if (file == nullptr) return error_answer(404, "not_found", "There is no such file.");
  return unless_known(
      {.body = std::string(file->content), .content_type = file->content_type, .etag = file->etag()},
      question);
}

using enum Page::Access;

constexpr std::array kPages{
    Page{"/healthz", "GET", Anybody, answer_health},
    Page{"/readyz", "GET", Anybody, answer_readiness},
    Page{"/metrics", "GET", Operator, answer_metrics},
    Page{"/api/access", "GET", Anybody, answer_access},
    Page{"/api/rules", "GET", Operator, answer_rules},
    Page{"/api/reload", "POST", Operator, ask_reload, Page::Body::None, &Sources::longest_reload},
    Page{"/api/upgrade", "POST", Operator, ask_upgrade, Page::Body::None, &Sources::longest_upgrade},
    Page{"/api/explain", "POST", Operator, answer_explain, Page::Body::Json},
    Page{"/api/keys", "GET", Operator, answer_keys},
    Page{"/api/keys", "DELETE", Operator, answer_keys},
    Page{"/api/client-keys", "GET", Operator, list_api_keys},
    Page{"/api/client-keys", "PUT", Operator, set_api_key, Page::Body::Json,
         &Sources::longest_api_key_change},
    Page{"/api/client-keys", "PATCH", Operator, set_api_key, Page::Body::Json,
         &Sources::longest_api_key_change},
    Page{"/api/client-keys", "DELETE", Operator, remove_api_key, Page::Body::None,
         &Sources::longest_api_key_change},
    Page{"/api/servers", "GET", Operator, list_servers},
    Page{"/api/servers", "POST", Operator, change_server, Page::Body::Json},
    Page{"/api/top", "GET", Operator, show_top_clients},
    Page{"/api/overview", "GET", Operator, answer_overview},
    Page{"/api/history", "GET", Operator, answer_history},
    Page{"/", "GET", Anybody, answer_file},
    Page{"/web/page.css", "GET", Anybody, answer_file},
    Page{"/web/dygraph.js", "GET", Anybody, answer_file},
    Page{"/web/main.js", "GET", Anybody, answer_file},
    Page{"/web/api.js", "GET", Anybody, answer_file},
    Page{"/web/charts.js", "GET", Anybody, answer_file},
    Page{"/web/dom.js", "GET", Anybody, answer_file},
    Page{"/web/explain.js", "GET", Anybody, answer_file},
    Page{"/web/panels.js", "GET", Anybody, answer_file},
    Page{"/web/rates.js", "GET", Anybody, answer_file},
    Page{"/web/top.js", "GET", Anybody, answer_file},
    Page{"/web/verdict.js", "GET", Anybody, answer_file},
    Page{"/web/words.js", "GET", Anybody, answer_file},
    Page{"/web/icon.svg", "GET", Anybody, answer_file},
};

}  // namespace

bool answers(const Page& page, std::string_view method) noexcept {
  return method == page.method || (method == "HEAD" && page.method == "GET");
}

const Page* find_page(std::string_view path, std::string_view method) noexcept {
  const Page* found = nullptr;
  for (const Page& page : kPages) {
    if (page.path != path) continue;
    if (answers(page, method)) return &page;
    if (found == nullptr) found = &page;
  }
  return found;
}

std::string methods_of(std::string_view path) {
  std::string methods;
  for (const Page& page : kPages) {
    if (page.path != path) continue;
    methods += methods.empty() ? "" : ", ";
    methods += page.method == "GET" ? "GET, HEAD" : page.method;
  }
  return methods;
}

}  // namespace weir::admin
