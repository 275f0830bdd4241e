#include "weir/limit/rate.hpp"

#include "weir/base/units.hpp"

#include <cctype>
#include <charconv>

namespace weir::limit {

namespace {
constexpr std::uint64_t kMaxCount = 1'000'000'000;
}

base::Result<Rate> parse_rate(std::string_view text) {
  const auto wrong = [&](const char* why) {
    return base::Error{
        "\"" + std::string(text) + "\" is not a rate (" + why +
        "); write COUNT/PERIOD with a period in s, min, h or day, such as \"10/s\" or \"20/10s\""};
  };
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return wrong("no '/'");
  Rate rate;
  const auto digits = text.substr(0, slash);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rate.count);
  if (error != std::errc{} || end != digits.data() + digits.size())
    return wrong("the count is not a whole number");
  if (rate.count == 0 || rate.count > kMaxCount) return wrong("the count must be from 1 to 1000000000");
  std::string period(text.substr(slash + 1));
  if (period.empty()) return wrong("no period");
  if (std::isdigit(static_cast<unsigned char>(period.front())) == 0) period.insert(0, "1");
  const auto parsed = base::parse_duration(period);
  if (period == "1month")
    return base::Error{"\"" + std::string(text) +
                       "\" is not a rate, because months differ in length; write days, such as "
                       "\"10/30days\""};
  if (!parsed) return wrong("unknown period");
  if (parsed->count() == 0) return wrong("the period is zero");
  rate.period = *parsed;
  return rate;
}

std::string to_string(const Rate& rate) {
  auto period = base::to_string(rate.period);
  if (period.front() == '1' && std::isdigit(static_cast<unsigned char>(period[1])) == 0) period.erase(0, 1);
  return std::to_string(rate.count) + "/" + period;
}

}  // namespace weir::limit
