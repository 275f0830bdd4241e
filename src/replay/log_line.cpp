#include "weir/replay/log_line.hpp"

#include "weir/observe/json_text.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <optional>

#include <boost/json.hpp>

namespace weir::replay {

namespace {

namespace json = boost::json;

// An exception that says why a line is unusable. Thrown and caught in this file only.
struct Fault {
  Unusable why;
};

constexpr std::string_view kCutText = "\xe2\x80\xa6";      // the end of a text that weir cut
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // replaces an octet that is not UTF-8

const json::value* find(const json::object& object, std::string_view name) {
  return object.if_contains(json::string_view(name.data(), name.size()));
}

std::string_view text_in(const json::object& object, std::string_view name) {
  const auto* value = find(object, name);
  if (value == nullptr) return {};
  const auto* text = value->if_string();
  if (text == nullptr) throw Fault{Unusable::Lacking};
  const std::string_view view(text->data(), text->size());
  const bool lossy = view.size() >= observe::kMaxJsonText && view.ends_with(kCutText);
  if (lossy || view.find(kReplacement) != std::string_view::npos) throw Fault{Unusable::Cut};
  return view;
}

std::string_view needed_text(const json::object& object, std::string_view name) {
  const auto text = text_in(object, name);
  if (text.empty()) throw Fault{Unusable::Lacking};
  return text;
}

std::uint64_t number_in(const json::object& object, std::string_view name) {
  const auto* value = find(object, name);
  if (value == nullptr) return 0;
  if (value->is_uint64()) return value->get_uint64();
  if (value->is_int64() && value->get_int64() >= 0) return static_cast<std::uint64_t>(value->get_int64());
  throw Fault{Unusable::Lacking};
}

std::optional<std::uint64_t> count_in(const json::object& object, std::string_view name) {
  if (find(object, name) == nullptr) return std::nullopt;
  return number_in(object, name);
}

constexpr std::uint64_t kMostMicros = std::uint64_t{1} << 52;

base::Duration span_in(const json::object& object, std::string_view name) {
  const auto us = number_in(object, name);
  if (us >= kMostMicros) throw Fault{Unusable::Lacking};
  return base::Duration(us);
}

// Returns how far weir's clock was ahead of the machine's clock. The times in log lines come from the
// machine's clock.
base::Duration clock_in(const json::object& replay) {
  const auto* value = find(replay, "clock_us");
  if (value == nullptr) return {};
  const auto* ahead = value->if_int64();
  constexpr auto kMost = static_cast<std::int64_t>(kMostMicros);
  if (ahead == nullptr || *ahead >= kMost || *ahead <= -kMost) throw Fault{Unusable::Lacking};
  return base::Duration(*ahead);
}

bool flag_in(const json::object& object, std::string_view name) {
  const auto* value = find(object, name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

std::optional<std::uint64_t> parse_hex(std::string_view text, std::size_t digits) {
  std::uint64_t word = 0;
  if (text.size() != digits) return std::nullopt;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), word, 16);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return word;
}

std::uint64_t hex_in(const json::object& object, std::string_view name, std::size_t digits) {
  const auto word = parse_hex(text_in(object, name), digits);
  if (!word) throw Fault{Unusable::Lacking};
  return *word;
}

limit::Key digest_in(const json::object& object, std::string_view name) {
  const auto text = text_in(object, name);
  const auto hi = parse_hex(text.substr(0, 16), 16);
  const auto lo = parse_hex(text.substr(std::min<std::size_t>(16, text.size())), 16);
  if (!hi || !lo) throw Fault{Unusable::Lacking};
  return {*lo, *hi};
}

policy::DescriptorEntry read_entry(const json::object& object, LoggedQuestion& question) {
  const auto key = needed_text(object, "key");
  if (find(object, "digest") == nullptr) return {key, text_in(object, "value")};
  question.hidden.push_back(key);
  return {key, needed_text(object, "digest")};
}

limit::Cost cost_in(const json::object& object) {
  const auto cost = number_in(object, "cost");
  if (cost > limit::kMaxCost) throw Fault{Unusable::Lacking};
  return static_cast<limit::Cost>(cost);
}

// Calls `each` with each object in the list `name` of `object`. Throws Fault if `name` is not a list of
// objects.
template <class Each>
void for_each(const json::object& object, std::string_view name, Each each) {
  const auto* value = find(object, name);
  if (value == nullptr) return;
  const auto* list = value->if_array();
  if (list == nullptr) throw Fault{Unusable::Lacking};
  for (const auto& item : *list) {
    if (!item.is_object()) throw Fault{Unusable::Lacking};
    each(item.get_object());
  }
}

limit::Factor factor_in(const json::object& json_rule) {
  constexpr auto kStep = limit::percent_of(1);
  if (find(json_rule, "factor") == nullptr) return limit::kWholeFactor;
  const auto percent = number_in(json_rule, "factor");
  if (percent < kStep || percent > 100) throw Fault{Unusable::Lacking};
  return static_cast<limit::Factor>(percent / kStep);
}

LoggedRule read_rule(const json::object& json_rule) {
  const auto variant = number_in(json_rule, "variant");
  if (variant > 0xffff) throw Fault{Unusable::Lacking};
  return {.rule = needed_text(json_rule, "rule"),
          .asks = static_cast<std::uint32_t>(hex_in(json_rule, "asks", 8)),
          .key = digest_in(json_rule, "key"),
          .cost = cost_in(json_rule),
          .outcome = needed_text(json_rule, "says"),
          .variant = static_cast<std::uint16_t>(variant),
          .elastic = flag_in(json_rule, "elastic"),
          .factor = factor_in(json_rule)};
}

observe::Amendment::Kind kind_of(std::string_view word) {
  for (std::size_t i = 0; i < std::size(observe::kAmendmentNames); ++i)
    if (word == observe::kAmendmentNames[i]) return static_cast<observe::Amendment::Kind>(i);
  throw Fault{Unusable::Lacking};
}

DoneAmendment read_amendment(const json::object& done, base::TimePoint start) {
  const auto at = start + span_in(done, "at_us");
  DoneAmendment read{needed_text(done, "rule"),
                     {.kind = kind_of(text_in(done, "does")),
                      .elastic = flag_in(done, "elastic"),
                      .cost = cost_in(done),
                      .at = at,
                      .timestamp = limit::timestamp_at(at) + number_in(done, "turn"),
                      .departure = start + span_in(done, "departure_us")}};
  if (find(done, "latency_us") != nullptr) read.what.ending.latency = span_in(done, "latency_us");
  read.what.ending.failed = flag_in(done, "failed");
  return read;
}

std::optional<limit::Cost> stated_cost_in(const json::object& object) {
  return find(object, "cost") != nullptr ? std::optional(cost_in(object)) : std::nullopt;
}

void read_question(const json::object& object, LoggedQuestion& question) {
  if (flag_in(object, "cut")) throw Fault{Unusable::Cut};
  question.domain = text_in(object, "domain");
  question.cost = stated_cost_in(object);
  question.descriptors.clear();
  for_each(object, "descriptors", [&](const json::object& json_rule) {
    if (question.descriptors.size() == limit::kMaxCharges) throw Fault{Unusable::Lacking};
    auto& descriptor = question.descriptors.emplace_back();
    descriptor.exact = flag_in(json_rule, "exact");
    descriptor.cost = stated_cost_in(json_rule);
    for_each(json_rule, "entries",
             [&](const json::object& entry) { descriptor.entries.push_back(read_entry(entry, question)); });
  });
}

void read_request(const json::object& object, const json::object& replay, LogLine& line) {
  const auto start = parse_time(needed_text(object, "time"));
  const auto client = base::IpAddress::parse(needed_text(object, "client"));
  if (!start || !client) throw Fault{Unusable::Lacking};
  line.start = *start + clock_in(replay);
  line.client = *client;
  line.method = needed_text(object, "method");
  line.target = needed_text(object, "target");
  line.host = text_in(object, "host");
  line.route = text_in(object, "route");
  line.status = static_cast<unsigned>(number_in(object, "status"));
  line.total = span_in(object, "total_us");
  line.upstream = span_in(object, "upstream_us");
  line.bytes_in = count_in(object, "bytes_in");
  line.bytes_out = count_in(object, "bytes_out");
  const auto* question = find(object, "question");
  line.is_question = question != nullptr;
  line.question.hidden.clear();
  if (!line.is_question) return;
  if (!question->is_object()) throw Fault{Unusable::Lacking};
  read_question(question->get_object(), line.question);
}

Verdict verdict_in(const json::object& object, const json::object& replay) {
  if (flag_in(replay, "lost")) throw Fault{Unusable::Lost};
  if (find(replay, "closed") != nullptr) throw Fault{Unusable::Closed};
  if (find(replay, "unmet") != nullptr) return Verdict::Unmet;
  const auto word = text_in(object, "verdict");
  if (word == "forward" || word == "delay") return Verdict::Admitted;
  if (word == "reject") return Verdict::Refused;
  if (word.empty()) throw Fault{Unusable::Unasked};
  throw Fault{Unusable::Lacking};
}

void read_replay(const json::object& replay, LogLine& line) {
  if (flag_in(replay, "cut")) throw Fault{Unusable::Cut};
  line.run = hex_in(replay, "run", 16);
  line.first = flag_in(replay, "first");
  line.evaluated_at = line.start + span_in(replay, "asked_us");
  line.timestamp = limit::timestamp_at(line.evaluated_at) + number_in(replay, "turn");
  line.api_key = text_in(replay, "api_key");
  line.user = text_in(replay, "user");
  line.org = text_in(replay, "org");
  line.service = text_in(replay, "service");
  line.device = text_in(replay, "device");
  line.tier = text_in(replay, "tier");
  line.country = text_in(replay, "country");
  line.unmet = text_in(replay, "unmet");
  line.unverified = flag_in(replay, "unverified");
  const auto* load = find(replay, "load");
  line.load.reset();
  if (load != nullptr && load->is_number()) line.load = load->to_number<double>();
  line.rules.clear();
  for_each(replay, "rules",
           [&](const json::object& json_rule) { line.rules.push_back(read_rule(json_rule)); });
  line.amendments.clear();
  for_each(replay, "amends", [&](const json::object& done) {
    if (!flag_in(done, "lost")) line.amendments.push_back(read_amendment(done, line.start));
  });
}

}  // namespace

void read_reset(const json::object& object, const json::object& replay, Reset& reset) {
  const auto time = parse_time(needed_text(object, "time"));
  if (!time) throw Fault{Unusable::Lacking};
  const auto at = *time + clock_in(replay);
  const auto& given = replay.at("reset").as_object();
  reset.rule = needed_text(given, "rule");
  reset.asks = static_cast<std::uint32_t>(hex_in(given, "asks", 8));
  reset.keys.clear();
  for_each(given, "keys", [&](const json::object& gone) {
    reset.keys.push_back({digest_in(gone, "key"), limit::timestamp_at(at) + number_in(gone, "turn")});
  });
}

struct LogLineReader::Impl {
  static constexpr std::size_t kRoom = 64 << 10;

  std::array<unsigned char, kRoom> room;  // memory for a parsed line; longer lines use the heap
  std::array<unsigned char, 4096> stack;
  std::optional<json::monotonic_resource> memory;
  std::optional<json::value> value;  // parsed in the memory of `memory`
  json::parser parser{{}, {}, stack.data(), stack.size()};
  LogLine line;
};

LogLineReader::LogLineReader() : impl_(std::make_unique<Impl>()) {}
LogLineReader::~LogLineReader() = default;

const LogLine* LogLineReader::read(std::string_view text, Unusable& why) {
  auto& [room, stack, memory, value, parser, line] = *impl_;
  value.reset();
  memory.emplace(room.data(), room.size());
  parser.reset(&*memory);
  json::error_code ec;
  parser.write(json::string_view(text.data(), text.size()), ec);
  why = Unusable::NoJson;
  if (ec) return nullptr;
  value.emplace(parser.release());
  const auto* object = value->if_object();
  if (object == nullptr) return nullptr;
  try {
    const auto* replay = find(*object, "replay");
    why = Unusable::NoReplay;
    if (replay == nullptr) return nullptr;
    why = Unusable::Lacking;
    if (!replay->is_object()) return nullptr;
    why = Unusable::Unasked;
    if (flag_in(replay->get_object(), "unasked")) return nullptr;
    const auto* reset = find(replay->get_object(), "reset");
    line.is_reset = reset != nullptr;
    why = Unusable::Lacking;
    if (line.is_reset && !reset->is_object()) return nullptr;
    if (line.is_reset) {
      read_reset(*object, replay->get_object(), line.reset);
      return &line;
    }
    read_request(*object, replay->get_object(), line);
    line.verdict = verdict_in(*object, replay->get_object());
    read_replay(replay->get_object(), line);
  } catch (const Fault& fault) {
    why = fault.why;
    return nullptr;
  }
  return &line;
}

std::optional<base::TimePoint> parse_time(std::string_view text) noexcept {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd.ddddddZ";
  if (text.size() != kShape.size()) return std::nullopt;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return std::nullopt;
  }
  const auto number = [&](std::size_t at, std::size_t digits) {
    int value = 0;
    for (std::size_t i = at; i < at + digits; ++i) value = value * 10 + (text[i] - '0');
    return value;
  };
  const std::chrono::year_month_day date{std::chrono::year(number(0, 4)),
                                         std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                         std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  if (!date.ok()) return std::nullopt;
  return base::TimePoint(std::chrono::sys_days(date)) + std::chrono::hours(number(11, 2)) +
         std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2)) +
         base::Duration(number(20, 6));
}

}  // namespace weir::replay
