#include "weir/policy/routing/field_edits.hpp"

#include "unit/policy/sample.hpp"

#include <gmock/gmock.h>

namespace weir::policy {
namespace {

using ::testing::ElementsAre;

class FieldEditsTest : public testing::Test {
 protected:
  void set(const char* name, const char* text, bool describes_body = false) {
    edits_.add({name, TextTemplate::parse(text).value(), true, describes_body});
  }
  void add(const char* name, const char* text) { edits_.add({name, TextTemplate::parse(text).value()}); }
  [[nodiscard]] std::vector<std::string> kept(Lines lines) const {
    auto head = head_with(lines);
    drop_fields(edits_, head.fields);
    std::vector<std::string> names;
    for (const auto& field : head.fields)
      if (!field.hop_by_hop) names.emplace_back(field.name);
    return names;
  }
  [[nodiscard]] std::string lines() const {
    std::string out = "X-Before: 1\r\n";
    append_lines(edits_, {request_, "0a1b"}, out);
    return out.substr(13);
  }
  [[nodiscard]] std::string own(std::string lines) const {
    edit_own_lines(edits_, {request_, "0a1b"}, lines);
    return lines;
  }

  http::RequestHead head_ = head_with({});
  Request request_ = request_of(head_);
  FieldEdits edits_;
};

TEST_F(FieldEditsTest, SetAndRemoveDropTheFieldsOfTheClientInEverySpelling) {
  set("X-Org", "{org}");
  add("X-Tag", "weir");
  edits_.remove("X-Debug-*");
  EXPECT_THAT(kept({{"x-org", "evil"},
                    {"X_ORG", "evil"},
                    {"X.Org", "evil"},
                    {"X-Tag", "own"},
                    {"X-Debug-A", "1"},
                    {"x_debug_b", "1"},
                    {"X-Debug", "1"},
                    {"X-Organ", "1"}}),
              ElementsAre("X-Tag", "X-Debug", "X-Organ"));
}

TEST_F(FieldEditsTest, FieldWithAnEmptyValueIsNotWritten) {
  set("X-Org", "{org}");
  set("X-Auth", "Bearer {user}");
  add("X-Who", "{tier} {user}");
  EXPECT_EQ(lines(), "X-Auth: Bearer\r\n");
  request_.client.org = "acme";
  request_.client.user = "ada";
  EXPECT_EQ(lines(), "X-Org: acme\r\nX-Auth: Bearer ada\r\nX-Who: ada\r\n");
}

TEST_F(FieldEditsTest, LineBreaksAndCommasInValuesFromTheClientAreEncoded) {
  set("X-User", "{user}");
  request_.client.user = "ada\r\nX-Role: root, eve";
  EXPECT_EQ(lines(), "X-User: ada%0D%0AX-Role:%20root%2C%20eve\r\n");
}

TEST_F(FieldEditsTest, AnswersOfWeirItselfGetOnlyFieldsThatDoNotDescribeABody) {
  set("X-Frame-Options", "DENY");
  set("Cache-Control", "public", true);
  add("Link", "</a>");
  EXPECT_EQ(own("Retry-After: 1\r\nx-frame-options: ALLOW\r\nLink: </b>\r\n"),
            "Retry-After: 1\r\nLink: </b>\r\nX-Frame-Options: DENY\r\nLink: </a>\r\n");
  EXPECT_EQ(own(""), "X-Frame-Options: DENY\r\nLink: </a>\r\n");
}

TEST_F(FieldEditsTest, TellsWhetherAPlaceholderNeedsAToken) {
  add("X-Host", "{host}");
  EXPECT_FALSE(edits_.uses_token);
  add("X-Org", "{org}");
  EXPECT_TRUE(edits_.uses_token);
}

// A rule may set the same field in its refusals, in another spelling. The field of the route must replace the
// field of the rule.
TEST_F(FieldEditsTest, SetReplacesFieldsOfWeirsAnswersInEverySpelling) {
  set("X-User", "a");
  EXPECT_EQ(own("X_User: rule\r\nx.user: rule\r\nX-Users: 1\r\n"), "X-Users: 1\r\nX-User: a\r\n");
}

}  // namespace
}  // namespace weir::policy
