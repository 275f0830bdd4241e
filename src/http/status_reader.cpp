#include "weir/http/status_reader.hpp"

#include "weir/http/head_parser.hpp"

namespace weir::http {

StatusReader::State StatusReader::feed(std::string_view piece) {
  unread_.append(piece);
  fed_ += piece.size();
  while (const auto size = find_answer_head_end(unread_, searched_)) {
    ResponseHead head;
    if (parse_response_head(std::string_view(unread_).substr(0, size), false, head)) return State::Faulty;
    if (head.status >= 200) {
      status_ = head.status;
      return State::Known;
    }
    unread_.erase(0, size);
    searched_ = 0;
  }
  if (find_early_answer_fault(unread_, searched_)) return State::Faulty;
  searched_ = unread_.size();
  return fed_ < kMost ? State::Wanting : State::Faulty;
}

}  // namespace weir::http
