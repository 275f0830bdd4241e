// Writes and reads the words of a snapshot, and computes their digest.
#pragma once

#include "limit/table/overflow.hpp"

#include "weir/limit/snapshot.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

namespace weir::limit {

static_assert(std::endian::native == std::endian::little, "words are copied in the machine's order");

inline constexpr std::uint64_t kSnapshotMagic = 0x7379'656b'7269'6577;  // "weirkeys"
// The version of the snapshot's format. The version must also change if weir computes client names in another
// way (policy/identity/name_key.cpp). Otherwise weir would restore states that no client finds.
inline constexpr std::uint64_t kSnapshotVersion = 7;
// Earlier versions of the format, and what a snapshot of each can hold.
inline constexpr std::uint64_t kFewRulesVersion = 6;   // at most kFewRules rules
inline constexpr std::uint64_t kNoPenaltyVersion = 5;  // at most kFewRules rules, no penalties
inline constexpr std::uint64_t kOneClockVersion = 4;   // as version 5, and no time of the machine's clock
inline constexpr std::uint64_t kSnapshotEnd = ~std::uint64_t{0};
inline constexpr std::size_t kLongestRuleName = 128;
inline constexpr std::size_t kMostVariants = std::size_t{1} << 16;
inline constexpr std::size_t kMostLimiters = 8 * kMostVariants;
inline constexpr std::size_t kMostSharedCells = Overflow::kMostCells;
inline constexpr std::size_t kMostPenalties = std::size_t{1} << 30;
inline constexpr std::size_t kMostBegins = 64;

inline constexpr std::uint64_t kLatest = (std::uint64_t{1} << 55) - 2;  // µs
inline constexpr std::size_t kFewRules = 256;

// The layout of a key's first word. The low bits are the number of the rule. The next bit says whether the
// key has a log. The other bits are drained_at in multiples of `unit`, rounded up, so a key may stay in the
// table for a little longer.
struct KeyWord {
  unsigned rule_bits;
  std::uint64_t unit;  // µs

  [[nodiscard]] constexpr std::uint64_t log_bit() const noexcept { return std::uint64_t{1} << rule_bits; }
  [[nodiscard]] constexpr std::uint64_t word(std::uint64_t drained_at, bool is_log,
                                             std::uint64_t rule) const noexcept {
    return (drained_at + unit - 1) / unit << (rule_bits + 1) | (is_log ? log_bit() : 0) | rule;
  }
  [[nodiscard]] constexpr std::uint64_t rule(std::uint64_t word) const noexcept {
    return word & (log_bit() - 1);
  }
  [[nodiscard]] constexpr bool is_log(std::uint64_t word) const noexcept { return (word & log_bit()) != 0; }
  [[nodiscard]] constexpr std::uint64_t drained_at(std::uint64_t word) const noexcept {  // µs
    return (word >> (rule_bits + 1)) * unit;
  }
};
inline constexpr KeyWord kNarrowKeyWord{.rule_bits = 8, .unit = 1};  // for at most kFewRules rules
inline constexpr KeyWord kWideKeyWord{.rule_bits = 11, .unit = 8};
static_assert(kFewRules <= kNarrowKeyWord.log_bit() && kMaxRules <= kWideKeyWord.log_bit());
constexpr const KeyWord& key_word_of(std::uint64_t version) noexcept {
  return version > kFewRulesVersion ? kWideKeyWord : kNarrowKeyWord;
}

inline constexpr std::size_t kWordsAtOnce = 8'192;

class WordWriter {
 public:
  explicit WordWriter(const ByteSink& sink) : sink_(sink) {}

  void put(std::uint64_t word) {
    digest_.part(word);
    words_[count_++] = word;
    if (count_ == words_.size()) flush();
  }
  void put(const base::Digest128& digest) {
    put(digest.lo);
    put(digest.hi);
  }
  void put(const Cell& cell) {
    for (const auto word : cell.words) put(word);
  }
  // Writes the length, then the characters, padded with zeros.
  void put(const std::string& text) {
    put(text.size());
    for (std::size_t at = 0; at < text.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + at, std::min(sizeof word, text.size() - at));
      put(word);
    }
  }
  void finish() {
    put(digest_.digest());
    flush();
  }

 private:
  void flush() {
    if (count_ != 0) sink_({reinterpret_cast<const char*>(words_.data()), count_ * sizeof(std::uint64_t)});
    count_ = 0;
  }

  const ByteSink& sink_;
  base::SipHash128 digest_{{}};
  std::array<std::uint64_t, kWordsAtOnce> words_;
  std::size_t count_ = 0;
};

// Reads words from a ByteSource. After the last word, take() returns zero and ended() returns true.
class WordReader {
 public:
  explicit WordReader(const ByteSource& source) : source_(source) {}

  std::uint64_t take() {
    if (at_ == count_ && !refill()) {
      ended_ = true;
      return 0;
    }
    digest_.part(words_[at_]);
    return words_[at_++];
  }
  base::Digest128 take_digest() {
    const std::uint64_t lo = take();
    return {lo, take()};
  }
  Cell take_cell() {
    const std::uint64_t first = take();
    return {{first, take()}};
  }
  // Reads a text of `length` octets and its padding. REQUIRES: the caller has taken the length, which
  // precedes the text.
  std::string take_text(std::size_t length) {
    std::string text(length, '\0');
    for (std::size_t at = 0; at < length; at += sizeof(std::uint64_t)) {
      const std::uint64_t word = take();
      std::memcpy(text.data() + at, &word, std::min(sizeof word, length - at));
    }
    return text;
  }
  // Reads the digest at the end. Returns true if it is the digest of all earlier words, and no byte follows.
  bool take_end() {
    auto before = digest_;
    const bool right = take_digest() == before.digest();
    return right && !ended_ && at_ == count_ && !refill() && !torn_;
  }
  [[nodiscard]] bool ended() const noexcept { return ended_; }

 private:
  bool refill() {
    const std::size_t bytes = source_({reinterpret_cast<char*>(words_.data()), sizeof words_});
    count_ = bytes / sizeof(std::uint64_t);
    torn_ = torn_ || bytes % sizeof(std::uint64_t) != 0;
    at_ = 0;
    return count_ != 0;
  }

  const ByteSource& source_;
  base::SipHash128 digest_{{}};
  std::array<std::uint64_t, kWordsAtOnce> words_;
  std::size_t count_ = 0;  // number of words in words_
  std::size_t at_ = 0;     // index of the next word to return
  bool torn_ = false;      // the bytes ended within a word
  bool ended_ = false;     // true: the caller asked for a word after the last one
};

}  // namespace weir::limit
