#include "ask/json_members.hpp"

#include "weir/base/edit_distance.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <boost/json.hpp>

namespace weir::ask {

namespace {

namespace json = boost::json;

// Names of members in other APIs, each with the name that weir uses for the member.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kOtherNames{
    {{"address", "ip"},
     {"client_ip", "ip"},
     {"descriptors", "attributes"},
     {"entries", "attributes"},
     {"fields", "headers"},
     {"hits", "cost"},
     {"hits_addend", "cost"},
     {"id", "permit"},
     {"remote_addr", "ip"},
     {"target", "path"},
     {"timeout", "timeout_seconds"},
     {"tokens", "cost"},
     {"uri", "path"},
     {"url", "path"},
     {"verb", "method"},
     {"weight", "cost"}}};
constexpr std::size_t kMostEdits = 2;
constexpr std::size_t kMostShown = 40;  // the most octets of a name that an error repeats

std::string_view nearest(std::string_view name, std::span<const std::string_view> members) {
  const auto exists = [&](std::string_view member) {
    return std::find(members.begin(), members.end(), member) != members.end();
  };
  for (const auto& [other, member] : kOtherNames)
    if (other == name && exists(member)) return member;
  if (name.size() > kMostShown) return {};
  const auto closer = [&](std::string_view a, std::string_view b) {
    return base::edit_distance(name, a) < base::edit_distance(name, b);
  };
  const auto best = std::min_element(members.begin(), members.end(), closer);
  return base::edit_distance(name, *best) <= kMostEdits ? *best : std::string_view{};
}

}  // namespace

std::string quoted(std::string_view name) {
  std::string text(1, '"');
  return text.append(name.substr(0, kMostShown)).append(1, '"');
}

MemberFault take_text(const json::value& value, std::string_view name, std::string& text) {
  if (!value.is_string()) return quoted(name) + " is not a string";
  text.assign(value.get_string().data(), value.get_string().size());
  return std::nullopt;
}

MemberFault take_truth(const json::value& value, std::string_view name, bool& truth) {
  if (!value.is_bool()) return quoted(name) + " is neither true nor false";
  truth = value.get_bool();
  return std::nullopt;
}

MemberFault take_cost(const json::value& value, limit::Cost least, std::optional<limit::Cost>& cost) {
  const auto* small = value.if_int64();
  const auto* number = value.if_double();
  if (small != nullptr && *small >= 0)
    cost = static_cast<limit::Cost>(*small);
  else if (number != nullptr && *number >= 0 && *number <= static_cast<double>(limit::kMaxCost) &&
           *number == static_cast<double>(static_cast<limit::Cost>(*number)))
    cost = static_cast<limit::Cost>(*number);  // 5.0, as some languages write 5
  if (cost && *cost >= least && *cost <= limit::kMaxCost) return std::nullopt;
  return "\"cost\" is not a whole number from " + std::to_string(least) + " to " +
         std::to_string(limit::kMaxCost);
}

MemberFault take_headers(const json::value& value, HeaderList& headers) {
  if (!value.is_object()) return R"("headers" is not an object such as {"X-Tenant": "acme"})";
  for (const auto& member : value.get_object()) {
    const auto add = [&](const json::value& line) {
      auto& header = headers.emplace_back(std::string(member.key()), std::string());
      auto fault = take_text(line, header.first, header.second);
      return fault ? MemberFault("\"headers\": " + *fault) : std::nullopt;
    };
    const auto* lines = member.value().if_array();
    if (lines == nullptr) {
      if (auto fault = add(member.value())) return fault;
      continue;
    }
    for (const auto& line : *lines)
      if (auto fault = add(line)) return fault;
  }
  return std::nullopt;
}

std::string unknown_member(std::string_view name, std::span<const std::string_view> members) {
  auto text = "there is no member " + quoted(name);
  if (const auto meant = nearest(name, members); !meant.empty()) return text + "; write " + quoted(meant);
  text += "; expected one of ";
  for (const auto member : members)
    text.append(member == members.front() ? "" : member == members.back() ? " and " : ", ").append(member);
  return text;
}

}  // namespace weir::ask
