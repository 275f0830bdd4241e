// The configuration files that come with weir must be valid, even after commented-out lines are uncommented.
#include "unit/config/configuration.hpp"
#include "unit/net/tls.hpp"
#include "unit/policy/country_file.hpp"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>

namespace weir::config::test {
namespace {

using ::testing::IsEmpty;

// Writes the files that the shipped configurations name.
void write_what_is_named(const Folder& folder) {
  const net::Certificates made;
  folder.write("edge.crt", contents(made.cert()));
  folder.write("edge.key", contents(made.key()));
  folder.write("ca.crt", contents(made.cert()));
  folder.write("keys.toml", "[[key]]\nkey = \"k\"\ntier = \"free\"\n[[key]]\nkey = \"l\"\ntier = \"pro\"\n");
  policy::CountryFile countries;
  countries.add("203.0.113.0", 24, "CH");
  folder.write("GeoLite2-Country.mmdb", countries.bytes());
}

TEST(Shipped, ShippedConfigurationsAreValid) {
  const Folder folder;
  write_what_is_named(folder);
  const Variable demo("WEIR_DEMO_DIR", folder.file("").c_str());
  EXPECT_THAT(load_settings(shipped("demo.toml")).warnings, IsEmpty());
  EXPECT_EQ(load_settings(shipped("weir.toml")).rules.size(), 2u);
  auto whole = contents(shipped("weir.toml"));
  for (auto at = whole.find("\n#: "); at != std::string::npos; at = whole.find("\n#: "))
    whole.erase(at + 1, 3);
  const auto settings = parse_settings(whole, folder.file(kFile));
  EXPECT_EQ(settings.rules.size(), 19u);
  EXPECT_TRUE(settings.state.redis);
}

// The lines of weir.toml, and groups of commented-out lines that the test uncomments together. A
// commented-out line begins with "#: ". A commented-out table header forms a group with the commented-out
// lines of its table. Each other commented-out line is a group of its own.
struct Parts {
  std::vector<std::string> lines;
  std::vector<std::vector<std::size_t>> parts;  // for each group, the indices of its lines

  explicit Parts(const std::string& text) {
    std::istringstream stream(text);
    bool in_part = false;
    for (std::string line; std::getline(stream, line); lines.push_back(line)) {
      if (line.starts_with("#: [")) parts.emplace_back();
      if (line.starts_with("#: [") || line.starts_with("["))
        in_part = line.starts_with("#");
      else if (line.starts_with("#: ") && !in_part)
        parts.emplace_back();
      if (line.starts_with("#: ")) parts.back().push_back(lines.size());
    }
  }
  // Returns the text of weir.toml with two kinds of lines uncommented: the lines `chosen`, and the groups
  // whose first line begins with one of `words`.
  [[nodiscard]] std::string with(const std::vector<std::size_t>& chosen,
                                 const std::vector<std::string>& words) const {
    auto all = lines;
    const auto uncomment = [&](std::size_t at) { all[at] = lines[at].substr(3); };
    for (const auto at : chosen) uncomment(at);
    for (const auto& part : parts)
      for (const auto& word : words)
        if (lines[part.front()].starts_with("#: " + word)) std::for_each(part.begin(), part.end(), uncomment);
    std::string text;
    for (const auto& line : all) text += line + "\n";
    return text;
  }
};

TEST(Shipped, EachCommentedOutPartOfTheShippedConfigurationIsValid) {
  const Folder folder;
  write_what_is_named(folder);
  const Variable demo("WEIR_DEMO_DIR", folder.file("").c_str());
  const Parts file(contents(shipped("weir.toml")));
  EXPECT_GT(file.parts.size(), 20u);
  for (const auto& part : file.parts) {
    std::vector<std::string> needs;
    for (const auto at : part) {
      const auto& line = file.lines[at];
      const auto is_place = [&](const char* key) { return line.starts_with("#: " + std::string(key) + " "); };
      if (is_place("country") || is_place("city") || is_place("region") || is_place("asn"))
        needs.push_back("geo ");
      if (line.starts_with("#: tier = {") || line.starts_with("#: claims ")) needs.push_back("[client.jwt]");
      if (line.starts_with("#: messages_burst ")) needs.push_back("messages ");
      if (line.starts_with("#: store = \"redis\"")) needs.push_back("[state.redis]");
    }
    EXPECT_THAT(mistakes_in(file.with(part, needs), folder.file(kFile)), IsEmpty())
        << file.lines[part.front()];
  }
}

}  // namespace
}  // namespace weir::config::test
