#include "cli/top/top_frame.hpp"

#include "cli/top/columns.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>

namespace weir::cli {

namespace {

constexpr std::size_t kUnbounded = Screen::kUnbounded;
constexpr std::size_t kIndent = 2, kCost = 8, kError = 10;  // widths of the columns of a list of clients
constexpr std::string_view kBold = "\x1b[1m", kRed = "\x1b[31m", kPlain = "\x1b[0m";

// Returns the text as a line with its newline. Shortens the text to the screen's width.
std::string line_of(std::string text, const Screen& screen, std::string_view style) {
  if (screen.width != kUnbounded) text = in_columns(std::move(text), screen.width);
  text.erase(text.find_last_not_of(' ') + 1);
  if (screen.ansi && !style.empty()) text = std::string(style) + text + std::string(kPlain);
  return text + (screen.ansi ? "\x1b[K\n" : "\n");
}

// Returns the name of a client. Adds the beginning of the digest if several clients may have the name: if it
// is empty, or contains "api_key" or a label, such as "header:x-tenant". A name with a label may also be cut
// (observe::SpaceSaving::kText), as "path:/a/long/one" is. An IPv6 address has colons, but is unique.
std::string client_name(const TopClient& one) {
  const auto has = [&](const char* part) { return one.client.find(part) != std::string::npos; };
  const bool is_address =
      !one.client.empty() && one.client.find_first_not_of("0123456789abcdef:.") == std::string::npos;
  const bool is_unique = is_address || !(one.client.empty() || has("api_key") || has(":"));
  return one.client + (is_unique ? "" : " " + one.digest.substr(0, 8));
}

// A rule, with the number of its decisions of each kind per second.
struct RuleRates {
  const TopRule* rule;
  double admitted, delayed, refused, would_refuse;
  bool idle;  // no request matched the rule

  [[nodiscard]] bool refuses() const noexcept { return refused > 0; }
};

struct List {
  std::string title;
  const std::vector<TopClient>* clients;
};

class Frame {
 public:
  Frame(const Sample& before, const Sample& now, const Screen& screen)
      : before_(before), now_(now), screen_(screen) {}

  std::string draw(std::string_view address) {
    show_whole(address);
    show_servers();
    show_redis();
    if (!now_.top_is_on) line("clients are not counted, because [admin] top is 0");
    show_rules(in_order());
    if (screen_.height != 0 && lines_.size() > screen_.height) lines_.resize(screen_.height);
    std::string all;
    for (const auto& one : lines_) all += one;
    return all;
  }

 private:
  void line(std::string text, std::string_view style = {}) {
    lines_.push_back(line_of(std::move(text), screen_, style));
  }

  // Returns how many more lines fit on the screen.
  [[nodiscard]] std::size_t room() const noexcept {
    if (screen_.height == 0) return std::numeric_limits<std::size_t>::max();
    return screen_.height - std::min(lines_.size(), screen_.height);
  }

  [[nodiscard]] double rate(std::string_view name, const Figures::Labels& labels = {}) const {
    return cli::rate(before_, now_, name, labels);
  }
  [[nodiscard]] static std::string a_second(const char* what, double rate) {
    return std::string(what) + " " + short_number(rate) + "/s";
  }

  void show_whole(std::string_view address) {
    const auto& figures = now_.figures;
    line(fitting({{"weir at " + std::string(address)},
                  {a_second("requests", rate("weir_requests_total")), 1},
                  {connections(), 3},
                  {"queued " + short_number(figures.sum("weir_queue_depth")), 2},
                  {"keys " + short_number(figures.sum("weir_keys")), 4}},
                 screen_.width),
         kBold);
  }

  [[nodiscard]] std::string connections() const {
    const auto& figures = now_.figures;
    const auto all = "connections " + short_number(figures.sum("weir_connections_open"));
    const auto http2 = figures.sum("weir_connections", {{"protocol", "HTTP/2"}});
    return http2 == 0 ? all
                      : all + " (" + short_number(http2) + " HTTP/2, streams " +
                            short_number(figures.sum("weir_http2_streams")) + ")";
  }

  void show_servers() {
    if (!now_.figures.has("weir_upstream_healthy")) return;
    std::string servers = "servers";
    bool down = false;
    for (const auto& series : now_.figures.all()) {
      if (series.name != "weir_upstream_healthy") continue;
      down = down || series.value == 0;
      const bool drained = now_.figures.sum("weir_upstream_drained", series.labels) != 0;
      servers += "   " + series.labels.at("upstream") + " " + series.labels.at("server") +
                 (series.value != 0 ? " up" : " DOWN") + (drained ? " drained" : "");
    }
    line(servers, down ? kRed : std::string_view{});
  }

  void show_redis() {
    const auto& figures = now_.figures;
    if (!figures.has("weir_redis_up")) return;
    const auto all = static_cast<double>(figures.count("weir_redis_up"));
    const auto up = figures.sum("weir_redis_up");
    line(fitting({{"redis"},
                  {short_number(up) + " of " + short_number(all) + " connections up"},
                  {a_second("calls", rate("weir_redis_calls_total")), 2},
                  {a_second("failures", rate("weir_redis_failures_total")), 1}},
                 screen_.width),
         up < all ? kRed : std::string_view{});
  }

  [[nodiscard]] RuleRates rates_of(const TopRule& rule) const {
    const auto said = [&](const char* outcome) {
      return rate("weir_decisions_total", {{"rule", rule.rule}, {"outcome", outcome}});
    };
    return {.rule = &rule,
            .admitted = said("admitted"),
            .delayed = said("delayed"),
            .refused = said("refused"),
            .would_refuse = said("shadow_refused"),
            .idle = rate("weir_decisions_total", {{"rule", rule.rule}}) == 0};
  }

  [[nodiscard]] std::vector<RuleRates> in_order() const {
    std::vector<RuleRates> rules;
    for (const auto& rule : now_.top) rules.push_back(rates_of(rule));
    const auto place = [](const RuleRates& rates) {
      return std::tuple(rates.idle, rates.rule->shadow, -(rates.refused + rates.would_refuse));
    };
    std::stable_sort(rules.begin(), rules.end(),
                     [&](const RuleRates& a, const RuleRates& b) { return place(a) < place(b); });
    return rules;
  }

  void show_rules(const std::vector<RuleRates>& rules) {
    std::size_t needed = 0;
    for (const auto& rates : rules) needed += 2 + lines_of_clients(*rates.rule);
    const bool tight = needed > room();
    auto next = rules.begin();
    for (; next != rules.end() && !(tight && next->idle); ++next) {
      const auto behind = static_cast<std::size_t>(rules.end() - next) - 1;
      const auto kept = behind == 0 ? 0 : std::min(behind + 1, room() / 2);
      if (!show_block(*next, room() - kept)) break;
    }
    show_briefly(std::span(next, rules.end()));
  }

  // Shows a rule and its clients in at most `most` lines. If there is no room for at least one client in each
  // list, shows nothing and returns false.
  bool show_block(const RuleRates& rates, std::size_t most) {
    constexpr std::size_t kAround = 3;  // a blank line, the rule's line, and the titles of the lists
    const auto wanted = lines_of_clients(*rates.rule);
    if (most < (wanted == 0 ? kAround - 1 : kAround + 1)) return false;
    line("");
    show_rates(rates);
    if (wanted != 0) show_clients(*rates.rule, std::min(wanted - 1, most - kAround));
    return true;
  }

  void show_briefly(std::span<const RuleRates> rules) {
    if (rules.empty()) return;
    if (room() > std::min<std::size_t>(rules.size(), 3)) line("");
    const bool all = rules.size() <= room();
    if (room() == 0) lines_.resize(screen_.height - 1);
    const auto shown = all ? rules.size() : room() - 1;
    for (const auto& rates : rules.first(shown)) show_rates(rates);
    if (!all) count(rules.subspan(shown));
  }

  // Adds a line that says how many rules are not shown, and how many of them refuse requests.
  void count(std::span<const RuleRates> rules) {
    std::size_t refuse = 0, would = 0;
    for (const auto& rates : rules) {
      refuse += rates.refuses() ? 1 : 0;
      would += !rates.refuses() && rates.would_refuse > 0 ? 1 : 0;
    }
    const auto none = refuse == 0 && would == 0;
    auto text =
        "... " + std::to_string(rules.size()) + (rules.size() == 1 ? " more rule, " : " more rules, ");
    if (none) text += "none refuses";
    if (!none) text += "of which " + std::to_string(refuse) + (refuse == 1 ? " refuses" : " refuse");
    if (would != 0) text += " and " + std::to_string(would) + " would";
    line(text + "; enlarge the terminal or read /api/top", refuse != 0 ? kRed : std::string_view{});
  }

  // Shows the rates of a rule on one line. On a narrow screen, omits the less important numbers, and then
  // shortens the name.
  void show_rates(const RuleRates& rates) {
    const bool shadow = rates.rule->shadow;
    std::vector<Part> matters;
    if (!shadow || rates.refuses()) matters.push_back({a_second("refused", rates.refused)});
    if (shadow || rates.would_refuse > 0) matters.push_back({a_second("would refuse", rates.would_refuse)});
    std::size_t rest = 0;
    for (const auto& part : matters) rest += part.text.size() + 2;
    constexpr unsigned kNothing = 4;
    std::vector<Part> parts{{name_of(*rates.rule, rest)},
                            {a_second("admitted", rates.admitted), rates.admitted > 0 ? 2 : kNothing},
                            {a_second("delayed", rates.delayed), rates.delayed > 0 ? 3 : kNothing + 1}};
    parts.insert(parts.end(), matters.begin(), matters.end());
    line(fitting(std::move(parts), screen_.width), rates.refuses() ? kRed
                                                   : rates.idle    ? std::string_view{}
                                                                   : kBold);
  }

  // Returns the rule's name, with "(shadow)" if the line then has room for `rest` more columns. Without that
  // room, omits "(shadow)", because the words "would refuse" on the line show the mode, too. Shortens the
  // name if even the name alone is too long.
  [[nodiscard]] std::string name_of(const TopRule& rule, std::size_t rest) const {
    auto name = rule.rule + (rule.shadow ? " (shadow)" : "");
    if (name.size() + rest <= screen_.width) return name;
    name = rule.rule;
    const auto most = screen_.width - std::min(rest, screen_.width);
    return name.size() <= most || most < 2 ? name : in_columns(std::move(name), most);
  }

  // Returns the lists of clients to show side by side. On a narrow screen, returns only one list: the refused
  // clients, or the admitted clients if no client was refused.
  [[nodiscard]] std::vector<List> lists_of(const TopRule& rule) const {
    constexpr std::size_t kTwo = 50;
    List admitted{"  most admitted", &rule.admitted};
    List refused{rule.shadow ? "  would be refused most" : "  most refused", &rule.refused};
    if (screen_.width >= kTwo) return {admitted, refused};
    return {rule.refused.empty() ? admitted : refused};
  }

  // Returns how many lines the lists of clients need, with their titles.
  [[nodiscard]] std::size_t lines_of_clients(const TopRule& rule) const {
    std::size_t most = 0;
    for (const auto& list : lists_of(rule)) most = std::max(most, list.clients->size());
    return most == 0 ? 0 : most + 1;
  }

  void show_clients(const TopRule& rule, std::size_t rows) {
    const auto lists = lists_of(rule);
    const auto over = " in " + short_number(rule.seconds) + " s";
    std::size_t longest = 0, widest = 0;
    for (const auto& list : lists) {
      widest = std::max(widest, list.title.size() + over.size() + 2);
      for (const auto& one : *list.clients) longest = std::max(longest, client_name(one).size());
    }
    widest = std::max(widest, kIndent + longest + kCost + kError);
    const auto width = screen_.width == kUnbounded ? widest
                       : lists.size() == 1         ? screen_.width
                                                   : (screen_.width - 2) / 2;
    std::string titles;
    for (const auto& list : lists)
      titles += in_columns(list.title + (list.title.size() + over.size() <= width ? over : ""), width);
    line(titles);
    for (std::size_t i = 0; i < rows; ++i) {
      std::string cells;
      for (const auto& list : lists) cells += cell(*list.clients, i, width, longest);
      line(cells);
    }
  }

  // Returns a client's name with its cost and the largest possible error of the cost. Omits the two numbers
  // if there is no room for them.
  static std::string cell(const std::vector<TopClient>& clients, std::size_t at, std::size_t width,
                          std::size_t longest) {
    constexpr std::size_t kBriefCost = 7, kAddress = 15;
    if (at >= clients.size() || width <= kIndent) return std::string(width, ' ');
    const auto& one = clients[at];
    const auto whole = width - kIndent;
    const bool with_error = whole >= longest + kCost + kError;
    const bool with_cost = with_error || whole >= std::min(longest, kAddress) + kBriefCost;
    std::string numbers;
    if (with_cost) numbers = to_the_right(short_number(one.cost), with_error ? kCost : kBriefCost);
    if (with_error)
      numbers = in_columns(numbers + (one.error > 0 ? " -" + short_number(one.error) : ""), kCost + kError);
    return "  " + in_columns(client_name(one), whole - numbers.size()) + numbers;
  }

  const Sample& before_;
  const Sample& now_;
  Screen screen_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string draw_absence(std::chrono::seconds absent, std::string_view why, std::string_view address,
                         const Screen& screen) {
  return line_of("weir at " + std::string(address) + "   has not answered for " +
                     std::to_string(absent.count()) + " s",
                 screen, kRed) +
         line_of(std::string(why), screen, {}) +
         line_of("weir top retries every second; press q to quit", screen, {});
}

std::string draw(const Sample& before, const Sample& now, std::string_view address, const Screen& screen) {
  return Frame(before, now, screen).draw(address);
}

}  // namespace weir::cli
