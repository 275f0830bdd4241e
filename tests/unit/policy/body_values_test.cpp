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
    values_.read(names_, head_with({{"content-type", type}}), body);
  }
  BodyFault fault_of_json(std::string_view pointer, std::string_view body,
                          std::string_view type = "application/json") {
    names_ = {};
    name({pointer});
    read(body, type);
    return values_.fault_of_json(pointer);
  }
  BodyFault fault_of_field(std::string_view field, std::string_view body, std::string_view type = kForm) {
    names_ = {};
    name({}, {field});
    read(body, type);
    return values_.fault_of_field(field);
  }
  std::string json(std::string_view pointer, std::string_view body) {
    names_ = {};
    name({pointer});
    read(body);
    return values_.fault_of_json(pointer) != BodyFault::None ? "fault" : std::string(values_.json(pointer));
  }
  std::string form(std::string_view field, std::string_view body, std::string_view type = kForm) {
    names_ = {};
    name({}, {field});
    read(body, type);
    return values_.fault_of_field(field) != BodyFault::None ? "fault" : std::string(values_.field(field));
  }

  BodyNames names_;
  BodyValues values_;
};

TEST_F(BodyValuesTest, ReadsStringsNumbersAndBooleans) {
  EXPECT_EQ(json("/email", R"({"email":"ada@example.com"})"), "ada@example.com");
  EXPECT_EQ(json("/email", R"({"email":"\u0061\/b"})"), "a/b");
  EXPECT_EQ(json("/n", R"({"n":5})"), "5");
  EXPECT_EQ(json("/n", R"({"n":-7})"), "-7");
  EXPECT_EQ(json("/yes", R"({"yes":true})"), "true");
  EXPECT_EQ(json("/yes", R"({"yes":false})"), "false");
}

TEST_F(BodyValuesTest, NullMemberIsTreatedAsMissing) {
  for (const auto* body : {R"({"a":null})", R"({"b":1})", "{}", "[]", "7", R"("a")", ""})
    EXPECT_EQ(json("/a", body), "") << body;
}

TEST_F(BodyValuesTest, ValueThatIsAnObjectOrArrayIsAFault) {
  EXPECT_EQ(fault_of_json("/a", R"({"a":{}})"), BodyFault::Structured);
  EXPECT_EQ(fault_of_json("/a", R"({"a":[1]})"), BodyFault::Structured);
  EXPECT_EQ(fault_of_json("/a/b", R"({"a":{"b":[]}})"), BodyFault::Structured);
}

TEST_F(BodyValuesTest, AllSpellingsOfANumberGiveTheSameValue) {
  for (const auto* number : {"5", "5.0", "5e0", "50e-1", "0.5E+1", "5.000"})
    EXPECT_EQ(json("/n", R"({"n":)" + std::string(number) + "}"), "5") << number;
  EXPECT_EQ(json("/n", R"({"n":1.50})"), "1.5");
  EXPECT_EQ(json("/n", R"({"n":15e-1})"), "1.5");
  EXPECT_EQ(json("/n", R"({"n":-0.0})"), "0");
  for (const auto* number : {"5.0000000000000000001", "4.9999999999999999999", "50000000000000000000e-19"})
    EXPECT_EQ(json("/n", R"({"n":)" + std::string(number) + "}"), "5") << number;
  for (const auto* number : {"1e18", "1000000000000000000", "1.0e18"})
    EXPECT_EQ(json("/n", R"({"n":)" + std::string(number) + "}"), "1000000000000000000") << number;
  for (const auto* number : {"1e23", "100000000000000000000000", "1.0E+23"})
    EXPECT_EQ(json("/n", R"({"n":)" + std::string(number) + "}"), "1e+23") << number;
  for (const auto* number : {"1e-400", "-0", "0e5", "-1e-9999"})
    EXPECT_EQ(json("/n", R"({"n":)" + std::string(number) + "}"), "0") << number;
  EXPECT_EQ(json("/n", R"({"n":-1e400})"), "-inf");
}

TEST_F(BodyValuesTest, WholeNumbersOf64BitsKeepTheirDigits) {
  for (const auto* number : {"9007199254740993", "-9223372036854775808", "18446744073709551615"})
    EXPECT_EQ(json("/n", R"({"n":)" + std::string(number) + "}"), number);
}

TEST_F(BodyValuesTest, StringsThatLookLikeNumbersAreUnchanged) {
  for (const auto* text : {"1.0", "01", "1e0", " 1"})
    EXPECT_EQ(json("/n", R"({"n":")" + std::string(text) + "\"}"), text);
}

TEST_F(BodyValuesTest, NumberThatIsTooLongIsAFault) {
  EXPECT_EQ(fault_of_json("/n", R"({"n":0.)" + std::string(kLongestBodyValue, '0') + "5e4097}"),
            BodyFault::LongNumber);
}

TEST_F(BodyValuesTest, MemberNamesAreMatchedIgnoringCase) {
  EXPECT_EQ(json("/email", R"({"Email":"ada"})"), "ada");
  EXPECT_EQ(json("/User/Email", R"({"uSER":{"EMAIL":"ada"}})"), "ada");
  EXPECT_EQ(json("/user", "{\"u\u017fer\":\"ada\"}"), "ada") << "Go reads the long s as s";
  EXPECT_EQ(json("/task", "{\"tas\u212a\":\"ada\"}"), "ada") << "Go reads the Kelvin sign as k";
  EXPECT_EQ(json("/email", "{\"ema\u0131l\":\"ada\"}"), "ada") << "Java reads the i without a dot as i";
  EXPECT_EQ(json("/email", "{\"EMA\u0130L\":\"ada\"}"), "ada") << "Java reads the I with a dot as i";
  EXPECT_EQ(json("/em\u0131", "{\"em\u0131\":\"ada\"}"), "ada");
  EXPECT_EQ(json("/\u00e4", "{\"\u00e4\":\"ada\"}"), "ada") << "other letters stay as they are";
  EXPECT_EQ(fault_of_json("/email", "{\"email\":\"r1\",\"ema\u0131l\":\"ada\"}"), BodyFault::Repeated);
  EXPECT_EQ(fault_of_field("email", "email=r1&ema%C4%B1l=ada"), BodyFault::Repeated);
  EXPECT_EQ(fault_of_json("/email", R"({"email":"r1","Email":"ada"})"), BodyFault::Repeated);
  EXPECT_EQ(fault_of_json("/user/email", R"({"user":{"email":"r1"},"USER":{}})"), BodyFault::Repeated);
  name({"/A", "/a"});
  read(R"({"a":1})");
  EXPECT_EQ(values_.json("/A"), "1");
  EXPECT_EQ(values_.json("/a"), "1");
}

TEST_F(BodyValuesTest, LongMemberNameDoesNotMatchItsTruncatedForm) {
  const std::string longer(kLongestBodyValue + 1, 'a');
  EXPECT_EQ(json("/" + longer.substr(1), "{\"" + longer + "\":1}"), "");
}

TEST_F(BodyValuesTest, JsonPointersFindValuesInNestedObjectsAndArrays) {
  EXPECT_EQ(json("/items/1/id", R"({"items":[{"id":"a"},{"id":"b"}]})"), "b");
  EXPECT_EQ(json("/items/2/id", R"({"items":[{"id":"a"},{"id":"b"}]})"), "");
  EXPECT_EQ(json("/a~1b/c~0d", R"({"a/b":{"c~d":1}})"), "1");
  EXPECT_EQ(json("/a", R"({"x":{"a":1}})"), "");
  EXPECT_EQ(json("/a/", R"({"a":{"":"empty"}})"), "empty");
}

TEST_F(BodyValuesTest, BodyIsReadOnceForTheValuesOfAllPointers) {
  name({"/a", "/a/b", "/c/0", "/d"}, {"f"});
  read(R"({"c":["first",2],"a":{"b":"deep"},"e":5})");
  EXPECT_EQ(values_.json("/a"), "");
  EXPECT_EQ(values_.json("/a/b"), "deep");
  EXPECT_EQ(values_.json("/c/0"), "first");
  EXPECT_EQ(values_.json("/d"), "");
  EXPECT_EQ(values_.json("/e"), "") << "no rule names it";
  EXPECT_EQ(values_.field("f"), "");
}

TEST_F(BodyValuesTest, RepeatedMemberIsAFault) {
  EXPECT_EQ(json("/a", R"({"a":1,"a":1})"), "fault");
  EXPECT_EQ(json("/a", R"({"a":1,"\u0061":2})"), "fault");
  EXPECT_EQ(json("/a/b", R"({"a":{"b":1},"a":{}})"), "fault") << "an object around it is repeated";
  EXPECT_EQ(json("/a", R"({"a":1,"b":2,"b":3})"), "1") << "another member is repeated";
  EXPECT_EQ(json("/0/a", R"([{"a":1},{"a":2}])"), "1") << "the members are in different objects";
}

TEST_F(BodyValuesTest, BodyThatIsNotJsonIsAFault) {
  const std::pair<std::string, JsonFault> cases[] = {{"{\"a\":1", JsonFault::Incomplete},
                                                     {"{\"a\":1} x", JsonFault::Trailing},
                                                     {"a=1", JsonFault::Malformed},
                                                     {"\xef\xbb\xbf{}", JsonFault::ByteOrderMark},
                                                     {std::string(600, '['), JsonFault::TooDeep}};
  name({"/a"});
  for (const auto& [body, fault] : cases) {
    read(body);
    EXPECT_EQ(values_.fault_of_json("/a"), BodyFault::NotJson) << body;
    EXPECT_EQ(values_.json_fault(), fault) << body;
    EXPECT_EQ(values_.json("/a"), "") << body;
  }
  EXPECT_EQ(fault_of_json("/a", "a=1", "text/plain"), BodyFault::NeitherKind);
}

TEST_F(BodyValuesTest, JsonIsReadUnderAnyContentType) {
  name({"/a"});
  for (const auto type : {std::string_view("text/plain"), std::string_view(""), kForm}) {
    read(R"({"a":1})", type);
    EXPECT_EQ(values_.json("/a"), "1") << type;
  }
}

TEST_F(BodyValuesTest, FormBodyHasNoJsonValues) {
  name({"/a"});
  for (const auto type : {kForm, std::string_view("multipart/form-data; boundary=x")}) {
    read("a=1", type);
    EXPECT_EQ(values_.fault_of_json("/a"), BodyFault::None) << type;
    EXPECT_EQ(values_.json("/a"), "") << type;
  }
}

TEST_F(BodyValuesTest, MalformedJsonWithAFormContentTypeIsAFault) {
  using namespace std::string_view_literals;
  for (const auto body : {R"({"a":NaN})"sv, R"({"a":1} x)"sv, "\xef\xbb\xbf{\"a\":1}"sv,
                          R"( {"a":"\ud800"})"sv, "[1"sv, "\xff\xfe{\0\"\0"sv, "\0{\0"sv, "\r\n\t{"sv,
                          "/**/{\"a\":1}"sv, "#\n{\"a\":1}"sv, ")]}'\n{\"a\":1}"sv})
    for (const auto type :
         {kForm, "multipart/form-data; boundary=x"sv, "application/x-www-form-urlencoded x"sv})
      EXPECT_EQ(fault_of_json("/a", body, type), BodyFault::NotJson) << body << ' ' << type;
  for (const auto body : {"a=1"sv, "--x\r\n"sv, "\r\n--x"sv, "%61=1"sv, "&a=1"sv, " "sv})
    EXPECT_EQ(fault_of_json("/a", body, kForm), BodyFault::None) << body;
}

TEST_F(BodyValuesTest, ContentTypeMustBeOneMediaType) {
  for (const auto* type : {"application/json, text/plain", "application/json,", "json",
                           "text/pl\xa0"
                           "ain",
                           "\xa0"
                           "text/plain",
                           "a/b/c"}) {
    EXPECT_EQ(fault_of_json("/a", R"({"a":1})", type), BodyFault::ContentType) << type;
    EXPECT_EQ(fault_of_field("a", "a=1", type), BodyFault::ContentType) << type;
  }
  name({"/a"}, {"a"});
  const auto read_lines = [&](std::string_view one, std::string_view other) {
    values_.read(names_, head_with({{"Content-Type", one}, {"x", "y"}, {"content-type", other}}),
                 R"({"a":1})");
    return values_.fault_of_json("/a");
  };
  EXPECT_EQ(read_lines("application/json", kForm), BodyFault::ContentType);
  EXPECT_EQ(read_lines("application/json", ""), BodyFault::ContentType);
  EXPECT_EQ(read_lines("application/json", "application/json"), BodyFault::None);
  values_.read(names_, head_with({{"Content-Type", "a, b"}}), "");
  EXPECT_EQ(values_.fault_of_json("/a"), BodyFault::None) << "the request has no body";
}

TEST_F(BodyValuesTest, ContentTypeThatOnlySomeServersReadAsAFormIsAFault) {
  for (const auto* type :
       {"application/x-www-form-urlencoded+json", "application/x-www-form-urlencodedx", "x/URLencoded",
        "application/json; x=\"application/x-www-form-urlencoded\"", "text/plain; x=multipart/form-data",
        "application/x-www-form-urlencoded; x=multipart/form-data", "multipart/form-data+json; boundary=x",
        "multipart/form-data; boundary=x; y=urlencoded", "application/multipart"}) {
    EXPECT_EQ(fault_of_json("/a", R"({"a":1})", type), BodyFault::ContentType) << type;
    EXPECT_EQ(fault_of_field("a", "a=1", type), BodyFault::ContentType) << type;
  }
  EXPECT_EQ(fault_of_field("a", "a=1", "application/x-www-form-urlencoded; x=urlencoded"), BodyFault::None);
}

TEST_F(BodyValuesTest, CharsetInTheContentTypeMustBeUtf8) {
  for (const auto* parameter :
       {"charset=utf-16", "charset=ibm037", "x=y;Charset = \"utf-7\"", "charset", "charset*=utf-8''utf-16",
        "charset=utf-8; charset=utf-16", "charset=utf-8x"}) {
    EXPECT_EQ(fault_of_json("/a", R"({"a":1})", "application/json;" + std::string(parameter)),
              BodyFault::Charset)
        << parameter;
    EXPECT_EQ(fault_of_field("a", "a=1", std::string(kForm) + "; " + parameter), BodyFault::Charset)
        << parameter;
  }
  for (const auto* parameter : {"charset=utf-8", "charset=\"UTF-8\"", " charset = utf8 ; x=y", "x=y"})
    EXPECT_EQ(form("a", "a=1", std::string(kForm) + ";" + parameter), "1") << parameter;
}

TEST_F(BodyValuesTest, FormFieldsAreDecoded) {
  EXPECT_EQ(form("user", "user=ada"), "ada");
  EXPECT_EQ(form("user", "x=1&user=ada+b%2Bc%40&y=2"), "ada b+c@");
  EXPECT_EQ(form("user", "%75ser=ada"), "ada");
  EXPECT_EQ(form("a b", "a+b=1"), "1");
  EXPECT_EQ(form("user", "user="), "");
  EXPECT_EQ(form("user", "user"), "");
  EXPECT_EQ(form("user", "User=ada"), "ada") << "some servers ignore the case of names";
  EXPECT_EQ(form("user", "user=%zz%4"), "%zz%4") << "broken escapes stay";
  EXPECT_EQ(form("user", ""), "");
}

TEST_F(BodyValuesTest, RepeatedFormFieldIsAFault) {
  EXPECT_EQ(form("user", "user=a&user=b"), "fault");
  EXPECT_EQ(form("user", "user=a&user=a"), "fault");
  EXPECT_EQ(form("user", "user=a&%75ser=a&x=1&user="), "fault");
  EXPECT_EQ(form("user", "x=1&x=2&user=a"), "a");
  EXPECT_EQ(form("user", "user=a&USER=b"), "fault");
}

TEST_F(BodyValuesTest, SpellingOfAFieldNameThatOnlySomeServersAcceptIsAFault) {
  for (const auto* body : {"+user=ada", "%20user=ada", "%0Auser=ada", "user+=ada", "user%00x=ada",
                           "user[]=ada", "user[0]=ada", "[user]=ada", "user%5Bx%5D=ada", "user=r1&+user=ada",
                           "x=1;user=ada", "user=ada;1", "user=r1&x=1; user=ada"})
    EXPECT_EQ(fault_of_field("user", body), BodyFault::Respelled) << body;
  for (const auto* body :
       {"user_id=1", "xuser=1", "use=1", "user-x=1", "a[user]=1", "x=1;y=2", "x]user=1", "x?user=1", "=user"})
    EXPECT_EQ(fault_of_field("user", body), BodyFault::None) << body;
  for (const auto* body : {"user.name=ada", "user+name=ada", "user[name=ada"})
    EXPECT_EQ(fault_of_field("user_name", body), BodyFault::Respelled) << body;
  EXPECT_EQ(form("user_name", "user[name]=eve&user_name=ada"), "ada");
}

TEST_F(BodyValuesTest, FieldNameWithUnbalancedBracketsIsAFault) {
  for (const auto* body : {"user=r1&user]=ada", "]user=ada", "user%5D=ada", "user]x=ada", "][user]]=ada"})
    EXPECT_EQ(fault_of_field("user", body), BodyFault::Respelled) << body;
  for (const auto* body : {"user[email=ada", "user]email=ada", "user[email]]=ada", "[user[[email]=ada",
                           "user[email]=r1&user%5B%5Demail=ada"})
    EXPECT_EQ(fault_of_field("user[email]", body), BodyFault::Respelled) << body;
  EXPECT_EQ(form("user[email]", "user[name]=x&useremail=y&user[email]=ada"), "ada");
}

TEST_F(BodyValuesTest, FieldNameAfterAQuestionMarkOrByteOrderMarkIsAFault) {
  for (const auto* body :
       {"?user=ada&user=r1", "??user=ada", " ?user=ada", "%3Fuser=ada", "? user=ada", "\xef\xbb\xbfuser=ada",
        "%EF%BB%BFuser=ada", "\n\xef\xbb\xbf?user=ada", "?x=1;user=ada"})
    EXPECT_EQ(fault_of_field("user", body), BodyFault::Respelled) << body;
  EXPECT_EQ(form("user", "?x=1&user=ada"), "ada");
  EXPECT_EQ(form("user", "\xef\xbbuser=eve&user=ada"), "ada");
}

TEST_F(BodyValuesTest, Utf16EscapeInAFormIsAFault) {
  for (const auto* body : {"%u0075ser=ada", "user=r1&%u0075ser=ada", "user=%u0061da", "user=ad%u0061&x=1",
                           "user=r1&%%u0075ser=ada", "us%u0065r=ada&user=r1", "user=%u%u00C4"})
    EXPECT_EQ(fault_of_field("user", body), BodyFault::Respelled) << body;
  for (const auto* body :
       {"user=%u006", "user=%u00g1", "user=ada&x=%u0061", "user=%25u0061", "%u=1&user=ada"})
    EXPECT_EQ(fault_of_field("user", body), BodyFault::None) << body;
}

TEST_F(BodyValuesTest, FieldNamesMayContainBrackets) {
  EXPECT_EQ(form("user[email]", "user[password]=x&user%5Bemail%5D=ada"), "ada");
  EXPECT_EQ(fault_of_field("user[email]", "user[email][]=ada"), BodyFault::Respelled);
  EXPECT_EQ(form("[x]", "[x]=1"), "1");
}

TEST_F(BodyValuesTest, FormIsReadOnceForTheValuesOfAllFields) {
  names_ = {};
  for (int i = 0; i < 100; ++i) names_.add_field("field" + std::to_string(i));
  read("field7=seven&field70=seventy&field=none&field100=none&field99=last", kForm);
  EXPECT_EQ(values_.field("field7"), "seven");
  EXPECT_EQ(values_.field("field70"), "seventy");
  EXPECT_EQ(values_.field("field99"), "last");
  EXPECT_EQ(values_.field("field10"), "");
  EXPECT_EQ(values_.field("field"), "");
}

TEST_F(BodyValuesTest, FormsAreReadUnlessTheContentTypeIsJsonOrMultipart) {
  for (const auto* type : {"Application/X-WWW-Form-Urlencoded ; charset=UTF-8",
                           "application/x-www-form-urlencoded x", "text/plain", ""})
    EXPECT_EQ(form("user", "user=ada", type), "ada") << type;
  for (const auto* type : {"application/json", "Application/JSON x", "application/problem+json", "text/json"})
    EXPECT_EQ(form("user", "user=ada", type), "") << type;
  for (const auto* type : {"multipart/form-data; boundary=user", "Multipart/mixed"})
    EXPECT_EQ(fault_of_field("user", "user=ada", type), BodyFault::Multipart) << type;
}

TEST_F(BodyValuesTest, FormWithMoreFieldsThanMaxParametersIsAFault) {
  name({}, {"user"});
  auto head = head_with({{"content-type", kForm}});
  head.bounds.parameters = 3;
  values_.read(names_, head, "a&b&user=ada");
  EXPECT_EQ(values_.field("user"), "ada");
  values_.read(names_, head, "a&b&c&user=ada");
  EXPECT_EQ(values_.fault_of_field("user"), BodyFault::TooManyFields);
  EXPECT_EQ(values_.field("user"), "");
}

TEST_F(BodyValuesTest, LongValuesAreTruncated) {
  const std::string longer(kLongestBodyValue + 1, 'x');
  EXPECT_EQ(json("/a", R"({"a":")" + longer + R"("})"), longer.substr(1));
  EXPECT_EQ(json("/a", R"({")" + longer + R"(":2,"a":1})"), "1");
  EXPECT_EQ(form("a", "a=" + longer), longer.substr(1));
}

TEST_F(BodyValuesTest, NewBodyReplacesTheValuesOfThePreviousBody) {
  name({"/a"}, {"f"});
  read(R"({"a":1})");
  read("");
  EXPECT_EQ(values_.json("/a"), "");
  read("x");
  EXPECT_EQ(values_.fault_of_json("/a"), BodyFault::NotJson);
  read("f=1", kForm);
  EXPECT_EQ(values_.fault_of_json("/a"), BodyFault::None);
  EXPECT_EQ(values_.field("f"), "1");
}

}  // namespace
}  // namespace weir::policy
