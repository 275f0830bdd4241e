// GET, PUT, PATCH and DELETE /api/client-keys: lists the API keys of the keys file without the keys
// themselves, adds or changes a key, or removes one.
#include "admin/pages/limit_json.hpp"
#include "admin/pages/pages.hpp"
#include "admin/pages/query.hpp"

#include "weir/net/use_task.hpp"
#include "weir/observe/json_value.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/json.hpp>

namespace weir::admin {

namespace {

namespace json = boost::json;
using policy::ApiKeyOwner;
using policy::ApiKeyOwnerChange;
using policy::ApiKeys;

constexpr std::string_view kKeyMembers = "key, sha256 or id, and of user, org, tier and service";

json::object key_json(const std::string& id, const ApiKeyOwner& owner) {
  json::object key{{"id", id}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) key[name] = value;
  };
  add("user", owner.user);
  add("org", owner.org);
  add("tier", owner.tier);
  add("service", owner.service);
  return key;
}

Answer no_keys_file() {
  return error_answer(
      404, "no_keys_file",
      "The configuration has no keys file; write [client] keys = \"keys.toml\", create that file "
      "and reload.");
}

Answer bad_request(const std::string& what) {
  return error_answer(400, "bad_request", what);
}

Answer answer_of(const ApiKeyResponse& response, bool removed) {
  if (response.status != 200) return error_answer(response.status, response.code, response.error);
  json::object body{{"key", key_json(response.id, response.owner)}};
  body[removed ? "removed" : "created"] = removed || response.created;
  if (!response.warnings.empty()) body["warnings"] = texts_json(response.warnings);
  return {.status = 200, .body = observe::json_text(body)};
}

// Returns true if a client could send the key in a header field.
bool is_sendable(std::string_view key) {
  return !key.empty() &&
         std::none_of(key.begin(), key.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }) &&
         key.front() != ' ' && key.back() != ' ';
}

// Reads one member into `change`. Returns what is wrong with it; empty if nothing is wrong. Messages never
// show an API key.
std::string take_key_member(std::string_view name, const std::string& text, ApiKeyRequest& change) {
  auto& owner = *change.owner;
  if (name == "user") return owner.user = text, "";
  if (name == "org") return owner.org = text, "";
  if (name == "tier") return owner.tier = text, "";
  if (name == "service") return owner.service = text, "";
  if (name != "key" && name != "sha256" && name != "id")
    return "there is no member \"" + std::string(name) + "\"; write one of " + std::string(kKeyMembers);
  if (change.digest || !change.id.empty()) return "write only one of key, sha256 and id";
  if (name == "id" && !ApiKeys::is_id(text))
    return "\"id\" is not the id of a key; write it as GET shows it, such as sha256:9f86d081884c7d65";
  if (name == "id") return change.id = text, "";
  if (name == "key" && !is_sendable(text))
    return "\"key\" is empty, or no client can send it; write the key as clients send it";
  change.digest = name == "key" ? ApiKeys::digest(text) : ApiKeys::parse_digest(text);
  return change.digest ? ""
                       : "\"sha256\" is not a SHA-256; write 64 hexadecimal digits, or the key as \"key\"";
}

// Reads the body into `change`. Members that the body leaves out keep their value in `change`. Returns what
// is wrong with the body; empty if nothing is wrong.
std::string read_change(std::string_view body, ApiKeyRequest& change) {
  json::error_code ec;
  const auto body_json = json::parse(json::string_view(body.data(), body.size()), ec);
  if (ec || !body_json.is_object())
    return "the body is not a JSON object; write one of " + std::string(kKeyMembers);
  for (const auto& member : body_json.as_object()) {
    const std::string_view name(member.key().data(), member.key().size());
    if (!member.value().is_string())
      return "\"" + std::string(name) + "\" is not a string; write it in quotes";
    const auto& text = member.value().as_string();
    auto fault = take_key_member(name, std::string(text.data(), text.size()), change);
    if (!fault.empty()) return fault;
  }
  return change.digest || !change.id.empty() ? ""
                                             : "the key is missing; write one of key, sha256 and id, such as "
                                               "{\"key\": \"…\", \"tier\": \"pro\"}";
}

// Shared with the callback of the change, which may run after the request has ended.
struct PendingChange {
  explicit PendingChange(const net::Executor& executor) : timer(executor) {}
  net::Timer timer;
  std::optional<ApiKeyResponse> response;
};

net::Task<Answer> change(const Sources& sources, const ApiKeyRequest& wanted, const net::Executor& executor) {
  const auto pending = std::make_shared<PendingChange>(executor);
  pending->timer.expires_after(sources.longest_api_key_change);
  sources.change_api_key(wanted, [pending](const ApiKeyResponse& response) {
    pending->response = response;
    pending->timer.cancel();
  });
  net::ErrorCode ignored;
  if (!pending->response) co_await pending->timer.async_wait(net::use_task(ignored));
  if (pending->response) co_return answer_of(*pending->response, !wanted.owner);
  co_return error_answer(504, "still_writing",
                         "The change is not finished yet; the log will show the result.");
}

}  // namespace

Answer list_api_keys(const Sources& sources, const PageRequest&) {
  const auto* keys = sources.api_keys ? sources.api_keys() : nullptr;
  if (keys == nullptr) return no_keys_file();
  std::vector<std::pair<std::string, const ApiKeyOwner*>> sorted;
  keys->for_each([&](const ApiKeys::Sha256& digest, const ApiKeyOwner& owner) {
    sorted.emplace_back(ApiKeys::id_of(digest), &owner);
  });
  std::sort(sorted.begin(), sorted.end(), [](const auto& one, const auto& other) {
    const auto& a = *one.second;
    const auto& b = *other.second;
    return std::tie(a.org, a.user, a.service, a.tier, one.first) <
           std::tie(b.org, b.user, b.service, b.tier, other.first);
  });
  json::array list;
  for (const auto& [id, owner] : sorted) list.push_back(key_json(id, *owner));
  return {.status = 200, .body = observe::json_text(json::object{{"keys", std::move(list)}})};
}

net::Task<Answer> set_api_key(const Sources& sources, const PageRequest& question,
                              const net::Executor& executor) {
  if (!sources.api_keys || sources.api_keys() == nullptr) co_return no_keys_file();
  ApiKeyRequest wanted{.owner = ApiKeyOwnerChange{}, .peer = question.peer};
  if (question.method == "PUT") wanted.owner = ApiKeyOwnerChange{"", "", "", ""};
  if (const auto fault = read_change(question.body, wanted); !fault.empty()) co_return bad_request(fault);
  auto changing = change(sources, wanted, executor);
  co_return co_await std::move(changing);
}

net::Task<Answer> remove_api_key(const Sources& sources, const PageRequest& question,
                                 const net::Executor& executor) {
  if (!sources.api_keys || sources.api_keys() == nullptr) co_return no_keys_file();
  auto query = query_of(question);
  auto [name, id] = take_parameter(query);
  if (name != "id" || !ApiKeys::is_id(id) || !query.empty())
    co_return bad_request("write the id of one key, as GET shows it: ?id=sha256:9f86d081884c7d65");
  const ApiKeyRequest wanted{.id = std::move(id), .peer = question.peer};
  auto changing = change(sources, wanted, executor);
  co_return co_await std::move(changing);
}

}  // namespace weir::admin
