#include "cli/replay/log_reader.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace weir::cli {

namespace {

constexpr std::size_t kPiece = 256 << 10;

struct Close {
  void operator()(gzFile file) const noexcept { gzclose_r(file); }
};

std::runtime_error failure(const std::string& file, const std::string& why) {
  return std::runtime_error(file + ": cannot be read: " + why);
}

}  // namespace

// Reads the file through zlib, which returns uncompressed data unchanged.
struct LogReader::Impl {
  explicit Impl(const std::string& name) : file_name(name) {
    std::error_code error;
    if (std::filesystem::is_directory(name, error)) throw failure(name, "it is a directory");
    errno = 0;
    file.reset(name == "-" ? gzdopen(::dup(STDIN_FILENO), "rb") : gzopen(name.c_str(), "rb"));
    if (!file) throw failure(name, std::generic_category().message(errno != 0 ? errno : ENOMEM));
    gzbuffer(file.get(), kPiece);
    text.resize(kPiece);
  }

  // Moves the unread bytes of the buffer to its front, and fills the rest from the file. Returns false at the
  // end of the file.
  bool fill() {
    std::memmove(text.data(), text.data() + at, end - at);
    end -= at;
    at = 0;
    if (end == text.size()) text.resize(2 * text.size());
    const int got = gzread(file.get(), text.data() + end, static_cast<unsigned>(text.size() - end));
    if (got < 0) {
      int code = 0;
      throw failure(file_name, gzerror(file.get(), &code));
    }
    end += static_cast<std::size_t>(got);
    return got > 0;
  }

  std::string file_name;
  std::unique_ptr<gzFile_s, Close> file;
  std::string text;
  std::size_t at = 0, end = 0;
};

LogReader::LogReader(const std::string& file) : impl_(std::make_unique<Impl>(file)) {}
LogReader::~LogReader() = default;

std::optional<std::string_view> LogReader::next() {
  auto& [name, file, text, at, end] = *impl_;
  std::size_t searched = 0;
  for (;;) {
    const auto* begin = text.data() + at;
    const auto* newline = std::memchr(begin + searched, '\n', end - at - searched);
    if (newline != nullptr) {
      const auto size = static_cast<std::size_t>(static_cast<const char*>(newline) - begin);
      at += size + 1;
      return std::string_view(begin, size);
    }
    searched = end - at;
    if (impl_->fill()) continue;
    if (at == end) return std::nullopt;
    const std::string_view last(text.data() + at, end - at);
    at = end;
    return last;
  }
}

std::uint64_t LogReader::consumed() const noexcept {
  const auto offset = gzoffset(impl_->file.get());
  return offset > 0 ? static_cast<std::uint64_t>(offset) : 0;
}

std::uint64_t size_of_logs(const std::vector<std::string>& files) {
  std::uint64_t all = 0;
  for (const auto& file : files) {
    std::error_code error;
    const auto size = std::filesystem::file_size(file, error);
    if (error) return 0;
    all += size;
  }
  return all;
}

std::optional<std::pair<std::string, std::string>> find_same_log(const std::vector<std::string>& files) {
  std::map<std::pair<dev_t, ino_t>, std::string> seen;
  for (const auto& file : files) {
    struct stat status {};
    const int failed = file == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(file.c_str(), &status);
    // A pipe needs no check, because nothing can be read from a pipe twice.
    if (failed != 0 || !S_ISREG(status.st_mode)) continue;
    const auto [known, fresh] = seen.try_emplace({status.st_dev, status.st_ino}, file);
    if (!fresh) return std::pair(known->second, file);
  }
  return std::nullopt;
}

}  // namespace weir::cli
