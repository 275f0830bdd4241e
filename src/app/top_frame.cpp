#include "app/top_frame.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include <boost/json.hpp>

namespace weir::app {

namespace {

namespace json = boost::json;

// `name{label="value",…} value`, with \\, \" and \n in values.
Figures::Labels parse_labels(std::string_view& rest) {
  Figures::Labels labels;
  while (!rest.empty() && rest.front() != '}') {
    const auto equals = rest.find("=\"");
    if (equals == std::string_view::npos) return labels;
    const auto name = rest.substr(0, equals);
    rest.remove_prefix(equals + 2);
    std::string value;
    while (!rest.empty() && rest.front() != '"') {
      const bool escaped = rest.front() == '\\' && rest.size() > 1;
      if (escaped) rest.remove_prefix(1);
      value += escaped && rest.front() == 'n' ? '\n' : rest.front();
      rest.remove_prefix(1);
    }
    labels.emplace(name, std::move(value));
    rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
    if (!rest.empty() && rest.front() == ',') rest.remove_prefix(1);
  }
  rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
  return labels;
}

std::string in_columns(std::string text, std::size_t width) {
  if (text.size() > width) text = width > 1 ? text.substr(0, width - 1) + "~" : text.substr(0, width);
  return text + std::string(width - text.size(), ' ');
}

// Four figures are enough for a glance: "12", "12.3k", "1.20M".
std::string short_number(double value) {
  constexpr std::array<char, 4> kUnits{' ', 'k', 'M', 'G'};
  std::size_t unit = 0;
  while (value >= 10'000 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  std::array<char, 32> text;
  const char* format = unit == 0 && (value >= 100 || value == std::floor(value)) ? "%.0f"
                       : value >= 100                                            ? "%.0f"
                                                                                 : "%.1f";
  const auto size = std::snprintf(text.data(), text.size(), format, value);
  std::string out(text.data(), static_cast<std::size_t>(std::max(size, 0)));
  if (unit != 0) out += kUnits[unit];
  return out;
}

std::string right(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

constexpr std::string_view kBold = "\x1b[1m", kRed = "\x1b[31m", kPlain = "\x1b[0m";

// As wide as the screen at most, with its newline.
std::string line_of(std::string text, const Screen& screen, std::string_view style) {
  text = in_columns(std::move(text), screen.width);
  text.erase(text.find_last_not_of(' ') + 1);
  if (screen.ansi && !style.empty()) text = std::string(style) + text + std::string(kPlain);
  return text + (screen.ansi ? "\x1b[K\n" : "\n");
}

class Frame {
 public:
  Frame(const Sample& before, const Sample& now, const Screen& screen)
      : before_(before), now_(now), screen_(screen) {
    seconds_ = std::chrono::duration<double>(now.taken - before.taken).count();
  }

  std::string draw(std::string_view address) {
    head(address);
    for (const auto& rule : now_.top) show(rule);
    if (!now_.top_is_on) {
      for (const auto& name : rules())
        show(TopRule{.rule = name, .seconds = 0, .admitted = {}, .refused = {}});
      line("who it is is not counted: [admin] top is 0");
    }
    if (screen_.height == 0 || lines_.size() <= screen_.height) return joined();
    lines_.resize(screen_.height - 1);
    line("... and more rules than lines: make the terminal higher, or ask /api/top");
    return joined();
  }

 private:
  void line(std::string text, std::string_view style = {}) {
    lines_.push_back(line_of(std::move(text), screen_, style));
  }

  std::string joined() const {
    std::string all;
    for (const auto& one : lines_) all += one;
    return all;
  }

  [[nodiscard]] double rate(std::string_view name, const Figures::Labels& labels = {}) const {
    const auto more = now_.figures.sum(name, labels) - before_.figures.sum(name, labels);
    return seconds_ > 0 && more > 0 ? more / seconds_ : 0;
  }
  [[nodiscard]] std::string per_second(std::string_view name, const Figures::Labels& labels = {}) const {
    return short_number(rate(name, labels)) + "/s";
  }

  [[nodiscard]] std::vector<std::string> rules() const {
    std::vector<std::string> names;
    for (const auto& series : now_.figures.all())
      if (series.name == "weir_decisions_total")
        if (const auto& rule = series.labels.at("rule");
            std::find(names.begin(), names.end(), rule) == names.end())
          names.push_back(rule);
    return names;
  }

  void head(std::string_view address) {
    const auto& figures = now_.figures;
    line("weir at " + std::string(address) + "   requests " + per_second("weir_requests_total") +
             "   connections " + short_number(figures.sum("weir_connections_open")) + "   queued " +
             short_number(figures.sum("weir_queue_depth")) + "   keys " +
             short_number(figures.sum("weir_keys")),
         kBold);
    std::string servers = "servers";
    bool down = false;
    for (const auto& series : figures.all()) {
      if (series.name != "weir_upstream_healthy") continue;
      down = down || series.value == 0;
      servers += "   " + series.labels.at("upstream") + " " + series.labels.at("server") +
                 (series.value != 0 ? " up" : " DOWN");
    }
    if (figures.has("weir_upstream_healthy")) line(servers, down ? kRed : std::string_view{});
    if (!figures.has("weir_redis_up")) return;
    double all = 0;
    for (const auto& series : figures.all()) all += series.name == "weir_redis_up" ? 1 : 0;
    const auto up = figures.sum("weir_redis_up");
    line("redis   " + short_number(up) + " of " + short_number(all) + " connections up   calls " +
             per_second("weir_redis_calls_total") + "   failures " + per_second("weir_redis_failures_total"),
         up < all ? kRed : std::string_view{});
  }

  void show(const TopRule& rule) {
    const auto said = [&](const char* outcome) {
      return per_second("weir_decisions_total", {{"rule", rule.rule}, {"outcome", outcome}});
    };
    line("");
    const bool refuses = rate("weir_decisions_total", {{"rule", rule.rule}, {"outcome", "refused"}}) > 0;
    line(rule.rule + "   admitted " + said("admitted") + "   delayed " + said("delayed") + "   refused " +
             said("refused") + "   shadow " + said("shadow_refused"),
         refuses ? kRed : kBold);
    const auto rows = std::max(rule.admitted.size(), rule.refused.size());
    if (rows == 0) return;
    const auto half = (screen_.width - 2) / 2;
    const auto over = " in " + short_number(rule.seconds) + " s";
    line(in_columns("  most admitted" + over, half) + "  most refused" + over);
    for (std::size_t i = 0; i < rows; ++i) line(cell(rule.admitted, i, half) + cell(rule.refused, i, half));
  }

  // The client, its cost, and by how much that may be too high.
  static std::string cell(const std::vector<TopClient>& clients, std::size_t at, std::size_t width) {
    if (at >= clients.size()) return std::string(width, ' ');
    const auto& one = clients[at];
    constexpr std::size_t kNumbers = 16;
    const auto cost =
        right(short_number(one.cost), 8) + (one.error > 0 ? " -" + short_number(one.error) : "");
    const bool bare = one.client.empty() || one.client.find("api_key") != std::string::npos ||
                      one.client.find(':') != std::string::npos;
    const auto name = one.client + (bare ? " " + one.digest.substr(0, 8) : "");
    return "  " + in_columns(name, width > kNumbers + 4 ? width - kNumbers - 4 : 0) +
           in_columns(cost, kNumbers + 2);
  }

  const Sample& before_;
  const Sample& now_;
  Screen screen_;
  double seconds_ = 0;
  std::vector<std::string> lines_;
};

std::vector<TopClient> read_clients(const json::value& list) {
  std::vector<TopClient> clients;
  for (const auto& one : list.as_array())
    clients.push_back({json::value_to<std::string>(one.at("client")),
                       json::value_to<std::string>(one.at("digest")), one.at("cost").to_number<double>(),
                       one.at("error").to_number<double>()});
  return clients;
}

}  // namespace

Figures::Figures(std::string_view page) {
  while (!page.empty()) {
    auto rest = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(rest.size() + 1, page.size()));
    const auto end = rest.find_first_of("{ ");
    if (rest.starts_with('#') || end == std::string_view::npos) continue;
    Series series{.name = std::string(rest.substr(0, end)), .labels = {}};
    const bool labelled = rest[end] == '{';
    rest.remove_prefix(end + 1);
    if (labelled) {
      series.labels = parse_labels(rest);
      rest.remove_prefix(std::min<std::size_t>(1, rest.size()));
    }
    if (std::from_chars(rest.data(), rest.data() + rest.size(), series.value).ec == std::errc{})
      all_.push_back(std::move(series));
  }
}

double Figures::sum(std::string_view name, const Labels& labels) const {
  double total = 0;
  for (const auto& series : all_) {
    const bool all = series.name == name && std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
                       const auto found = series.labels.find(label.first);
                       return found != series.labels.end() && found->second == label.second;
                     });
    if (all) total += series.value;
  }
  return total;
}

bool Figures::has(std::string_view name) const {
  return std::any_of(all_.begin(), all_.end(), [&](const Series& series) { return series.name == name; });
}

std::vector<TopRule> read_top(std::string_view page) {
  try {
    std::vector<TopRule> rules;
    const auto parsed = json::parse(json::string_view(page.data(), page.size()));
    for (const auto& entry : parsed.at("top").as_array())
      rules.push_back({json::value_to<std::string>(entry.at("rule")), entry.at("seconds").to_number<double>(),
                       read_clients(entry.at("admitted")), read_clients(entry.at("refused"))});
    return rules;
  } catch (const std::exception&) {
    throw std::runtime_error("its /api/top is not one of this version of weir");
  }
}

std::string draw_absence(std::chrono::seconds absent, std::string_view why, std::string_view address,
                         const Screen& screen) {
  return line_of("weir at " + std::string(address) + "   has not answered for " +
                     std::to_string(absent.count()) + " s",
                 screen, kRed) +
         line_of(std::string(why), screen, {}) + line_of("asked again each second; q ends this", screen, {});
}

std::string draw(const Sample& before, const Sample& now, std::string_view address, const Screen& screen) {
  return Frame(before, now, screen).draw(address);
}

}  // namespace weir::app
