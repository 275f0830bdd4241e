#include "cli/import/syntax/nginx_parser.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace weir::cli::nginx {

namespace {

bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// A word, or one of the signs ';', '{' and '}'. At the end of the text the sign is '\0'.
struct Token {
  std::string word;
  char sign = '\0';
  bool is_word = false;
  unsigned line = 0;
};

// Splits a text into tokens by nginx's rules. For example, a quote or a comment begins only at the start of a
// word.
class Lexer {
 public:
  explicit Lexer(std::string_view text) noexcept : text_(text) {}

  // Returns the next token. The error says what is wrong with the text.
  base::Result<Token> next() {
    skip_blanks();
    Token token;
    token.line = line_;
    if (at_ == text_.size()) return token;
    const char first = text_[at_];
    if (first == ';' || first == '{' || first == '}') {
      ++at_;
      token.sign = first;
      return token;
    }
    token.is_word = true;
    if (first != '"' && first != '\'') {
      take_bare(token.word);
      return token;
    }
    if (!take_quoted(token.word)) return base::Error{"a quoted text has no end"};
    if (at_ != text_.size() && !is_blank(text_[at_]) && text_[at_] != ';' && text_[at_] != '{' &&
        text_[at_] != ')')
      return base::Error{"expected a blank, \";\" or \"{\" behind a quoted text"};
    return token;
  }

  // Skips Lua code up to the '}' that closes the present block. Ignores braces in strings and comments.
  bool skip_lua_block() {
    for (std::size_t depth = 1; at_ != text_.size();) {
      if (skip_lua_text()) continue;
      if (text_[at_] == '{') ++depth;
      if (text_[at_] == '}' && --depth == 0) return true;
      take();
    }
    return false;
  }

  [[nodiscard]] unsigned line() const noexcept { return line_; }

 private:
  [[nodiscard]] bool sees(std::string_view text) const noexcept {
    return text_.substr(at_).starts_with(text);
  }

  // Skips all characters up to and including `end`, or up to the end of the text.
  void take_through(std::string_view end) noexcept {
    while (at_ != text_.size() && !sees(end)) take();
    for (std::size_t i = 0; i < end.size() && at_ != text_.size(); ++i) take();
  }

  // Skips a Lua string or comment. Returns false if neither begins here.
  bool skip_lua_text() noexcept {
    const bool comment = sees("--");
    if (comment) at_ += 2;
    if (skip_long_bracket()) return true;
    if (comment) {
      take_through("\n");
      return true;
    }
    const char quote = text_[at_];
    if (quote != '"' && quote != '\'') return false;
    take();
    while (at_ != text_.size()) {
      const char c = take();
      if (c == quote) return true;
      if (c == '\\' && at_ != text_.size()) take();
    }
    return true;
  }

  // Skips "[[…]]", or "[=[…]=]" with any number of "=". Returns false if no such bracket begins here.
  bool skip_long_bracket() noexcept {
    if (!sees("[")) return false;
    auto second = at_ + 1;
    while (second < text_.size() && text_[second] == '=') ++second;
    if (second == text_.size() || text_[second] != '[') return false;
    const auto signs = text_.substr(at_ + 1, second - at_ - 1);
    at_ = second + 1;
    while (at_ != text_.size()) {
      take_through("]");
      if (!sees(signs) || text_.substr(at_ + signs.size(), 1) != "]") continue;
      at_ += signs.size() + 1;
      break;
    }
    return true;
  }

  char take() noexcept {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }

  void skip_blanks() noexcept {
    while (at_ != text_.size()) {
      if (text_[at_] == '#')
        while (at_ != text_.size() && text_[at_] != '\n') ++at_;
      else if (is_blank(text_[at_]))
        take();
      else
        return;
    }
  }

  // Appends the character after a backslash. As in nginx, the backslash remains if the escape is unknown.
  void take_escaped(std::string& word) {
    constexpr std::string_view kSigns = "\"'\\trn";
    constexpr std::string_view kMeanings = "\"'\\\t\r\n";
    if (at_ == text_.size()) {
      word += '\\';
      return;
    }
    const char c = take();
    const auto known = kSigns.find(c);
    if (known == std::string_view::npos) word += '\\';
    word += known == std::string_view::npos ? c : kMeanings[known];
  }

  void take_bare(std::string& word) {
    while (at_ != text_.size()) {
      const char c = text_[at_];
      const bool variable = c == '{' && word.ends_with('$');  // "${name}" belongs to the word
      if (is_blank(c) || c == ';' || (c == '{' && !variable)) return;
      take();
      if (c == '\\')
        take_escaped(word);
      else
        word += c;
    }
  }

  bool take_quoted(std::string& word) {
    const char quote = take();
    while (at_ != text_.size()) {
      const char c = take();
      if (c == quote) return true;
      if (c == '\\')
        take_escaped(word);
      else
        word += c;
    }
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file)
      : lexer_(text), file_(std::make_shared<const std::string>(file)) {}

  base::Result<Directives> parse() {
    Directives all;
    if (const auto fault = parse_block(all, 0)) return *fault;
    return base::Result<Directives>(boost::system::in_place_value, std::move(all));
  }

 private:
  [[nodiscard]] base::Error error(unsigned line, const std::string& what) const {
    return {Position{file_, line}.text() + ": " + printable(what)};
  }

  // Reads directives up to the end of the block, or of the text if `depth` is 0.
  std::optional<base::Error> parse_block(Directives& into, std::size_t depth) {
    while (true) {
      const auto token = lexer_.next();
      if (!token) return error(lexer_.line(), token.error().message);
      if (!token->is_word) {
        if (token->sign == '}' && depth != 0) return std::nullopt;
        if (token->sign == '\0' && depth == 0) return std::nullopt;
        if (token->sign == '\0') return error(token->line, "a block has no \"}\"");
        return error(token->line, std::string("found \"") + token->sign + "\"; expected a directive");
      }
      if (++count_ > kMostDirectives)
        return error(token->line, "more than " + std::to_string(kMostDirectives) + " directives");
      into.push_back({Position{file_, token->line}, token->word, {}, {}, false});
      if (auto fault = parse_rest(into.back(), depth)) return fault;
    }
  }

  // Reads the arguments of a directive, and its block.
  std::optional<base::Error> parse_rest(Directive& directive, std::size_t depth) {
    while (true) {
      auto token = lexer_.next();
      if (!token) return error(lexer_.line(), token.error().message);
      if (token->is_word) {
        directive.arguments.push_back(std::move(token->word));
        continue;
      }
      if (token->sign == ';') return std::nullopt;
      if (token->sign != '{')
        return error(directive.position.line, "\"" + directive.name + "\" ends without \";\"");
      directive.has_block = true;
      if (directive.name.ends_with("_by_lua_block")) {
        if (lexer_.skip_lua_block())
          continue_after_lua();
        else
          return error(directive.position.line, "the block of " + directive.name + " has no \"}\"");
        return std::nullopt;
      }
      if (depth + 1 == kMostDepth)
        return error(token->line, "blocks are more than " + std::to_string(kMostDepth) + " deep");
      return parse_block(directive.block, depth + 1);
    }
  }

  void continue_after_lua() { (void)lexer_.next(); }  // takes the '}'

  Lexer lexer_;
  std::shared_ptr<const std::string> file_;
  std::size_t count_ = 0;
};

}  // namespace

base::Result<Directives> parse_nginx(std::string_view text, const std::string& file) {
  return Parser(text, file).parse();
}

}  // namespace weir::cli::nginx
