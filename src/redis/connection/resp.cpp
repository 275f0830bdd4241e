#include "redis/connection/resp.hpp"

#include <new>

#include <hiredis/read.h>

namespace weir::redis {

namespace {

// Bounds on the size of a reply: bytes not yet parsed, numbers, words (texts in arrays) and counted bytes. A
// reply of weir's scripts has at most 210 numbers.
constexpr std::size_t kMaxUnread = 1 << 20;
constexpr std::size_t kMaxNumbers = 4096;
constexpr std::size_t kMaxWords = 1024;
constexpr std::size_t kMaxReply = 1 << 20;
constexpr std::size_t kElement = 16;  // each element adds this number of bytes to the counted size
constexpr int kMaxDepth = 8;

bool is_too_deep(const redisReadTask* task) noexcept {
  int depth = 0;
  for (; task != nullptr && depth <= kMaxDepth; task = task->parent) ++depth;
  return depth > kMaxDepth;
}

}  // namespace

// hiredis calls these functions while it parses elements. The functions write into the only Reply of the
// ReplyReader. Each returns the address of that Reply as its "object", which hiredis only compares with null.
struct ReplyBuilder {
  static Reply& reply_of(const redisReadTask* task) {
    return static_cast<ReplyReader*>(task->privdata)->reply_;
  }
  // Counts an element. Returns false if the reply is too large. The caller must then return null, which
  // hiredis treats as a failed allocation.
  static bool takes(const redisReadTask* task, std::size_t octets) {
    return static_cast<ReplyReader*>(task->privdata)->takes(octets);
  }

  static void* text(const redisReadTask* task, char* bytes, std::size_t size) {
    if (!takes(task, size)) return nullptr;
    Reply& reply = reply_of(task);
    if (task->parent != nullptr) {
      reply.kind = Reply::Kind::Other;
      if (reply.words.size() < kMaxWords) reply.words.emplace_back(bytes, size);
      return &reply;
    }
    reply.kind = task->type == REDIS_REPLY_ERROR    ? Reply::Kind::Error
                 : task->type == REDIS_REPLY_STATUS ? Reply::Kind::Status
                                                    : Reply::Kind::Text;
    reply.text.assign(bytes, size);
    return &reply;
  }

  static void* array(const redisReadTask* task, int) {
    if (!takes(task, 0) || is_too_deep(task)) return nullptr;
    Reply& reply = reply_of(task);
    reply.kind = task->parent == nullptr ? Reply::Kind::Numbers : Reply::Kind::Other;
    return &reply;
  }

  static void* number(const redisReadTask* task, long long value) {
    if (!takes(task, 0)) return nullptr;
    Reply& reply = reply_of(task);
    if (task->parent == nullptr) reply.kind = Reply::Kind::Number;
    if (reply.numbers.size() < kMaxNumbers)
      reply.numbers.push_back(value);
    else
      reply.kind = Reply::Kind::Other;
    return &reply;
  }

  static void* nil(const redisReadTask* task) {
    if (!takes(task, 0)) return nullptr;
    Reply& reply = reply_of(task);
    reply.kind = task->parent == nullptr ? Reply::Kind::Nil : Reply::Kind::Other;
    return &reply;
  }

  static void release(void*) {}

  static const redisReplyObjectFunctions kFunctions;
};

const redisReplyObjectFunctions ReplyBuilder::kFunctions{text, array, number, nil, release};

void ReplyReader::Free::operator()(void* reader) const noexcept {
  redisReaderFree(static_cast<redisReader*>(reader));
}

ReplyReader::ReplyReader() {
  reset();
}
ReplyReader::~ReplyReader() = default;

void ReplyReader::reset() {
  // redisReaderCreateWithFunctions only reads the table, although its parameter is not const.
  redisReader* reader =
      redisReaderCreateWithFunctions(const_cast<redisReplyObjectFunctions*>(&ReplyBuilder::kFunctions));
  if (reader == nullptr) throw std::bad_alloc();
  reader->privdata = this;
  reader_.reset(reader);
  size_ = 0;
  begun_ = false;
  reply_.numbers.clear();
  reply_.words.clear();
}

bool ReplyReader::takes(std::size_t octets) noexcept {
  size_ += octets + kElement;
  return size_ <= kMaxReply;
}

void ReplyReader::feed(std::string_view bytes) {
  // Ignores the result. redisReaderFeed fails only if memory runs out; hiredis remembers this, and next()
  // reports it.
  redisReaderFeed(static_cast<redisReader*>(reader_.get()), bytes.data(), bytes.size());
  begun_ = true;
}

ReplyReader::Next ReplyReader::next() {
  auto* reader = static_cast<redisReader*>(reader_.get());
  if (reader->ridx == -1) {  // no part of the next reply has arrived
    size_ = 0;
    reply_.numbers.clear();
    reply_.words.clear();
  }
  void* object = nullptr;
  if (redisReaderGetReply(reader, &object) != REDIS_OK) return Next::Malformed;
  if (object != nullptr) {
    begun_ = reader->pos < reader->len;
    return Next::Ready;
  }
  return reader->len - reader->pos > kMaxUnread ? Next::Malformed : Next::Incomplete;
}

}  // namespace weir::redis
