#include "weir/http/parameters.hpp"

#include "weir/http/percent.hpp"

#include <algorithm>

namespace weir::http {

namespace {

constexpr std::size_t kKeptParameters = 64;
constexpr std::size_t kKeptText = 4 << 10;  // how many octets of memory clear() keeps

std::string_view take_piece(std::string_view& rest, char separator) noexcept {
  const auto end = std::min(rest.find(separator), rest.size());
  const auto piece = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return piece;
}

std::string_view trimmed(std::string_view text) noexcept {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::size_t count_pieces(std::string_view list, char separator) noexcept {
  return 1 + static_cast<std::size_t>(std::count(list.begin(), list.end(), separator));
}

}  // namespace

void Parameters::clear() noexcept {
  read_ = too_many_ = false;
  source_ = {};
  parameters_.clear();
  decoded_.clear();
  if (parameters_.capacity() > kKeptParameters) std::vector<Parameter>().swap(parameters_);
  if (decoded_.capacity() > kKeptText) std::string().swap(decoded_);
}

std::string_view Parameters::decode(std::string_view raw, bool blanks) {
  const bool plain =
      raw.find('%') == std::string_view::npos && (!blanks || raw.find('+') == std::string_view::npos);
  if (plain) return raw;
  const auto begin = decoded_.size();
  append_decoded(decoded_, raw, blanks ? Plus::Blank : Plus::Itself);
  return std::string_view(decoded_).substr(begin);
}

void Parameters::add_parameter(std::string_view piece) {
  const auto equals = std::min(piece.find('='), piece.size());
  const auto name = piece.substr(0, equals);
  const auto value = piece.substr(std::min(equals + 1, piece.size()));
  const bool plus_in_value = value.find('+') != std::string_view::npos;
  Parameter parameter{.name = decode(name, false),
                      .value = value,
                      .decoded = decode(value, false),
                      .spaced = {},
                      .order = static_cast<std::uint32_t>(parameters_.size())};
  parameter.spaced = plus_in_value ? decode(value, true) : parameter.decoded;
  parameters_.push_back(parameter);
  if (name.find('+') == std::string_view::npos) return;
  parameter.name = decode(name, true);
  parameter.order = static_cast<std::uint32_t>(parameters_.size());
  parameters_.push_back(parameter);
}

void Parameters::read_query(std::string_view query, std::size_t most) {
  if (read_ && source_.data() == query.data() && source_.size() == query.size()) return;
  clear();
  read_ = true;
  source_ = query;
  if (query.empty()) return;
  too_many_ = count_pieces(query, '&') > most;
  if (too_many_) return;
  // Reserves enough memory for all decoded texts, because views point into decoded_. Decoding makes no text
  // longer, and each octet is decoded at most twice.
  if (query.find_first_of("%+") != std::string_view::npos) decoded_.reserve(2 * query.size());
  while (!query.empty()) add_parameter(take_piece(query, '&'));
  sort();
}

void Parameters::begin_cookies() noexcept {
  clear();
  read_ = true;
}

void Parameters::add_cookies(std::string_view field, std::size_t most) {
  too_many_ = too_many_ || parameters_.size() + count_pieces(field, ';') > most;
  while (!too_many_ && !field.empty()) {
    const auto piece = trimmed(take_piece(field, ';'));
    const auto equals = std::min(piece.find('='), piece.size());
    const auto value = trimmed(piece.substr(std::min(equals + 1, piece.size())));
    parameters_.push_back({.name = trimmed(piece.substr(0, equals)),
                           .value = value,
                           .decoded = value,
                           .spaced = value,
                           .order = static_cast<std::uint32_t>(parameters_.size())});
  }
}

void Parameters::end_cookies() {
  if (too_many_) parameters_.clear();
  sort();
}

void Parameters::sort() {
  std::sort(parameters_.begin(), parameters_.end(), [](const Parameter& a, const Parameter& b) {
    return a.name != b.name ? a.name < b.name : a.order < b.order;
  });
}

std::span<const Parameter> Parameters::named(std::string_view name) const noexcept {
  const auto below = [](const Parameter& parameter, std::string_view wanted) {
    return parameter.name < wanted;
  };
  const auto first = std::lower_bound(parameters_.begin(), parameters_.end(), name, below);
  auto last = first;
  while (last != parameters_.end() && last->name == name) ++last;
  return {first, last};
}

}  // namespace weir::http
