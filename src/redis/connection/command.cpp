#include "redis/connection/command.hpp"

#include <charconv>

namespace weir::redis {

namespace {

void append_counted(std::string& out, char mark, std::size_t number) {
  char line[24];
  line[0] = mark;
  char* end = std::to_chars(line + 1, line + sizeof line - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(line, end);
}

}  // namespace

void append_head(std::string& out, std::size_t words) {
  append_counted(out, '*', words);
}

void append_bulk_head(std::string& out, std::size_t size) {
  append_counted(out, '$', size);
}

void append_bulk(std::string& out, std::string_view word) {
  append_bulk_head(out, word.size());
  out.append(word);
  out.append("\r\n", 2);
}

void append_command(std::string& out, std::initializer_list<std::string_view> words) {
  append_head(out, words.size());
  for (const auto word : words) append_bulk(out, word);
}

}  // namespace weir::redis
