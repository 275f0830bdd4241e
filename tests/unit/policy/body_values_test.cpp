// Tests which values weir reads from JSON bodies and forms.
#include "weir/policy/body_values.hpp"

#include "unit/policy/sample.hpp"

#include <initializer_list>

#include <gtest/gtest.h>

namespace weir::policy {
namespace {

constexpr std::string_view kForm = "application/x-www-form-urlencoded";

class BodyValuesTest : public testing::Test {
 protected:
  void name(std::initializer_list<std::string_view> pointers,
            std::initializer_list<std::string_view> fields = {}) {
    for (const auto pointer : pointers) names_.add_pointer(pointer);
    for (const auto field : fields) names_.add_field(field);
  }
  void read(std::string_view body, std::string_view type = "application/json") {
    const auto head = head_with({{"content-type", type}});
    values_.read(names_, head.fields, body);
  }
  std::string json(std::string_view pointer, std::string_view body) {
    names_ = {};
    name({pointer});
    read(body);
    return values_.fault_of_json(pointer) != JsonFault::None ? "fault" : std::string(values_.json(pointer));
  }
  std::string form(std::string_view field, std::string_view body, std::string_view type = kForm) {
    names_ = {};
    name({}, {field});
    read(body, type);
    return values_.fault_of_field(field) != JsonFault::None ? "fault" : std::string(values_.field(field));
  }

  BodyNames names_;
  BodyValues values_;
};

TEST_F(BodyValuesTest, StringsNumbersAndBooleansAreValues) {
  EXPECT_EQ(json("/email", R"({"email":"ada@example.com"})"), "ada@example.com");
  EXPECT_EQ(json("/email", R"({"email":"\u0061\/b"})"), "a/b");
  EXPECT_EQ(json("/n", R"({"n":5})"), "5");
  EXPECT_EQ(json("/n", R"({"n":-7})"), "-7");
  EXPECT_EQ(json("/yes", R"({"yes":true})"), "true");
  EXPECT_EQ(json("/yes", R"({"yes":false})"), "false");
}

TEST_F(BodyValuesTest, ObjectsArraysNullAndMissingMembersAreAbsent) {
  for (const auto* body :
       {R"({"a":{}})", R"({"a":[1]})", R"({"a":null})", R"({"b":1})", "{}", "[]", "7", R"("a")", ""})
    EXPECT_EQ(json("/a", body), "") << body;
}

TEST_F(BodyValuesTest, ANumberHasOneSpelling) {
  for (const auto* number : {"5", "5.0", "5e0", "50e-1", "0.5E+1", "5.000"})
    EXPECT_EQ(json("/n", R"({"n":)" + std::string(number) + "}"), "5") << number;
  EXPECT_EQ(json("/n", R"({"n":1.50})"), "1.5");
  EXPECT_EQ(json("/n", R"({"n":15e-1})"), "1.5");
  EXPECT_EQ(json("/n", R"({"n":-0.0})"), "0");
  EXPECT_EQ(json("/n", R"({"n":12345678901234567890123})"), "12345678901234567890123");
}

TEST_F(BodyValuesTest, PointersLeadIntoObjectsAndArrays) {
  EXPECT_EQ(json("/items/1/id", R"({"items":[{"id":"a"},{"id":"b"}]})"), "b");
  EXPECT_EQ(json("/items/2/id", R"({"items":[{"id":"a"},{"id":"b"}]})"), "");
  EXPECT_EQ(json("/a~1b/c~0d", R"({"a/b":{"c~d":1}})"), "1");
  EXPECT_EQ(json("/a", R"({"x":{"a":1}})"), "");
  EXPECT_EQ(json("/a/", R"({"a":{"":"empty"}})"), "empty");
}

TEST_F(BodyValuesTest, OneReadFindsAllValues) {
  name({"/a", "/a/b", "/c/0", "/d"}, {"f"});
  read(R"({"c":["first",2],"a":{"b":"deep"},"e":5})");
  EXPECT_EQ(values_.json("/a"), "");
  EXPECT_EQ(values_.json("/a/b"), "deep");
  EXPECT_EQ(values_.json("/c/0"), "first");
  EXPECT_EQ(values_.json("/d"), "");
  EXPECT_EQ(values_.json("/e"), "") << "no rule names it";
  EXPECT_EQ(values_.field("f"), "");
}

TEST_F(BodyValuesTest, AMemberThatOccursTwiceIsAFault) {
  EXPECT_EQ(json("/a", R"({"a":1,"a":1})"), "fault");
  EXPECT_EQ(json("/a", R"({"a":1,"\u0061":2})"), "fault");
  EXPECT_EQ(json("/a/b", R"({"a":{"b":1},"a":{}})"), "fault") << "an object around it is repeated";
  EXPECT_EQ(json("/a", R"({"a":1,"b":2,"b":3})"), "1") << "another member is repeated";
  EXPECT_EQ(json("/0/a", R"([{"a":1},{"a":2}])"), "1") << "the members are in different objects";
}

TEST_F(BodyValuesTest, ABodyThatIsNotJsonIsAFault) {
  const std::pair<std::string, JsonFault> cases[] = {{"{\"a\":1", JsonFault::Incomplete},
                                                     {"{\"a\":1} x", JsonFault::Trailing},
                                                     {"a=1", JsonFault::Malformed},
                                                     {"\xef\xbb\xbf{}", JsonFault::ByteOrderMark},
                                                     {std::string(600, '['), JsonFault::TooDeep}};
  name({"/a"});
  for (const auto& [body, fault] : cases) {
    read(body);
    EXPECT_EQ(values_.fault_of_json("/a"), fault) << body;
    EXPECT_EQ(values_.json("/a"), "") << body;
  }
}

TEST_F(BodyValuesTest, JsonIsReadWhateverTheContentTypeSays) {
  name({"/a"});
  for (const auto type : {std::string_view("text/plain"), std::string_view(""), kForm}) {
    read(R"({"a":1})", type);
    EXPECT_EQ(values_.json("/a"), "1") << type;
  }
}

TEST_F(BodyValuesTest, AFormHasNoJsonValues) {
  name({"/a"});
  for (const auto type : {kForm, std::string_view("multipart/form-data; boundary=x")}) {
    read("a=1", type);
    EXPECT_EQ(values_.fault_of_json("/a"), JsonFault::None) << type;
    EXPECT_EQ(values_.json("/a"), "") << type;
  }
}

TEST_F(BodyValuesTest, FormFieldsAreDecoded) {
  EXPECT_EQ(form("user", "user=ada"), "ada");
  EXPECT_EQ(form("user", "x=1&user=ada+b%2Bc%40&y=2"), "ada b+c@");
  EXPECT_EQ(form("user", "%75ser=ada"), "ada");
  EXPECT_EQ(form("a b", "a+b=1"), "1");
  EXPECT_EQ(form("user", "user="), "");
  EXPECT_EQ(form("user", "user"), "");
  EXPECT_EQ(form("user", "User=ada"), "");
  EXPECT_EQ(form("user", "user=%zz%4"), "%zz%4") << "broken escapes stay";
  EXPECT_EQ(form("user", ""), "");
}

TEST_F(BodyValuesTest, AFieldThatOccursTwiceIsAFault) {
  EXPECT_EQ(form("user", "user=a&user=b"), "fault");
  EXPECT_EQ(form("user", "user=a&user=a"), "fault");
  EXPECT_EQ(form("user", "user=a&%75ser=a&x=1&user="), "fault");
  EXPECT_EQ(form("user", "x=1&x=2&user=a"), "a");
}

TEST_F(BodyValuesTest, FormsAreReadOnlyIfTheContentTypeSaysSo) {
  EXPECT_EQ(form("user", "user=ada", "Application/X-WWW-Form-Urlencoded ; charset=UTF-8"), "ada");
  EXPECT_EQ(form("user", "user=ada", "application/json"), "");
  EXPECT_EQ(form("user", "user=ada", "multipart/form-data; boundary=user"), "");
  EXPECT_EQ(form("user", "user=ada", ""), "");
}

TEST_F(BodyValuesTest, OnlyTheBeginningOfALongValueIsKept) {
  const std::string longer(kLongestBodyValue + 1, 'x');
  EXPECT_EQ(json("/a", R"({"a":")" + longer + R"("})"), longer.substr(1));
  EXPECT_EQ(json("/a", R"({")" + longer + R"(":2,"a":1})"), "1");
  EXPECT_EQ(form("a", "a=" + longer), longer.substr(1));
}

TEST_F(BodyValuesTest, ANewBodyReplacesTheValuesOfTheLastOne) {
  name({"/a"}, {"f"});
  read(R"({"a":1})");
  read("");
  EXPECT_EQ(values_.json("/a"), "");
  read("x");
  EXPECT_EQ(values_.fault_of_json("/a"), JsonFault::Malformed);
  read("f=1", kForm);
  EXPECT_EQ(values_.fault_of_json("/a"), JsonFault::None);
  EXPECT_EQ(values_.field("f"), "1");
}

}  // namespace
}  // namespace weir::policy
