#include "cli/import/ingress/yaml.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

namespace weir::cli {

namespace {

struct YamlFault : std::runtime_error {
  YamlFault(unsigned at, const std::string& what) : std::runtime_error(what), line(at) {}
  unsigned line;
};

unsigned line_of(const YAML::Mark& mark) {
  return mark.line < 0 ? 1 : static_cast<unsigned>(mark.line) + 1;
}

// Builds the tree from the events of the parser. Throws YamlFault.
class YamlBuilder : public YAML::EventHandler {
 public:
  std::vector<YamlNode> documents;

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(YamlNode::Kind::Null, mark, anchor, {});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw YamlFault(line_of(mark), "found an alias; write the value itself in its place");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!open_.empty() && open_.back().kind == YamlNode::Kind::Map && !has_key_) {
      take_key(mark, anchor, value);
      return;
    }
    add(YamlNode::Kind::Text, mark, anchor, value);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    begin(YamlNode::Kind::List, mark, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    begin(YamlNode::Kind::Map, mark, anchor);
  }
  void OnMapEnd() override { end(); }

 private:
  void count(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0)
      throw YamlFault(line_of(mark), "found an anchor; weir import reads YAML without anchors");
    if (++nodes_ > kMostYamlNodes)
      throw YamlFault(line_of(mark),
                      "found more than " + std::to_string(kMostYamlNodes) + " values; split the file");
  }
  void take_key(const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& key) {
    count(mark, anchor);
    constexpr std::size_t kMostKeys = 10'000;  // a bound, because keys are compared one by one
    auto& keys = open_.back().keys;
    if (keys.size() == kMostKeys)
      throw YamlFault(line_of(mark), "found more than " + std::to_string(kMostKeys) + " keys in one map");
    if (open_.back().find(key) != nullptr)
      throw YamlFault(line_of(mark), "found the key \"" + key + "\" twice; remove one of them");
    keys.push_back(key);
    has_key_ = true;
  }
  void check_key(const YAML::Mark& mark) const {
    if (!open_.empty() && open_.back().kind == YamlNode::Kind::Map && !has_key_)
      throw YamlFault(line_of(mark), "found a key that is no text");
  }
  void begin(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    check_key(mark);
    count(mark, anchor);
    if (open_.size() == kDeepestYaml)
      throw YamlFault(line_of(mark), "found more than " + std::to_string(kDeepestYaml) + " levels");
    open_.push_back({.kind = kind, .line = line_of(mark)});
    has_key_ = false;
  }
  void end() {
    auto node = std::move(open_.back());
    open_.pop_back();
    put(std::move(node));
  }
  void add(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor, const std::string& text) {
    check_key(mark);
    count(mark, anchor);
    put({.kind = kind, .line = line_of(mark), .text = text});
  }
  void put(YamlNode node) {
    has_key_ = false;
    (open_.empty() ? documents : open_.back().items).push_back(std::move(node));
  }

  std::vector<YamlNode> open_;
  bool has_key_ = false;  // true: the innermost open node is a map, and its last key has no value yet
  std::size_t nodes_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const noexcept {
  if (kind != Kind::Map) return nullptr;
  const auto found = std::find(keys.begin(), keys.end(), key);
  const auto at = static_cast<std::size_t>(found - keys.begin());
  return at < items.size() ? &items[at] : nullptr;
}

std::string_view YamlNode::text_of(std::string_view key) const noexcept {
  const auto* item = find(key);
  return item != nullptr && item->kind == Kind::Text ? std::string_view(item->text) : std::string_view{};
}

base::Result<std::vector<YamlNode>> parse_yaml(std::string_view text, const std::string& file) {
  std::istringstream stream{std::string(text)};
  YamlBuilder builder;
  const auto fault = [&](unsigned line, const std::string& what) {
    return base::Error{file + ":" + std::to_string(line) + ": " + what};
  };
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YamlFault& error) {
    return fault(error.line, error.what());
  } catch (const YAML::Exception& error) {
    return fault(line_of(error.mark), "is no YAML: " + error.msg);
  }
  return std::move(builder.documents);
}

}  // namespace weir::cli
