#include "weir/acme/folder.hpp"

#include "weir/acme/certificate.hpp"
#include "weir/acme/messages.hpp"
#include "weir/net/file.hpp"
#include "weir/net/tls_context.hpp"
#include "weir/net/tls_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weir::acme {

namespace {

constexpr std::string_view kFirstLine = "weir acme ";  // before the authority's URL; PEM readers skip it
constexpr const char* kDraft = "draft.";               // begins the names of drafts
constexpr std::size_t kMostChallenges = 1000;
constexpr std::size_t kRoom = 16384;  // more octets than the file of a usual certificate has

base::Error system_error(const std::string& what, const std::string& file) {
  return {"cannot " + what + " \"" + file + "\": " + std::generic_category().message(errno)};
}

bool write_all(int descriptor, std::string_view text) noexcept {
  while (!text.empty()) {
    const auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return ::fsync(descriptor) == 0;
}

// A file under a temporary name, which no other process uses. When the file is complete, it is renamed or
// linked.
class Draft {
 public:
  explicit Draft(const std::string& folder)
      : path_(folder + "/" + kDraft + "XXXXXX"), descriptor_(::mkostemp(path_.data(), O_CLOEXEC)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(path_.c_str());  // fails without harm if the file was renamed
  }
  // Writes the text to the file, which only its owner may read: mkostemp(3) creates files with the mode 0600.
  [[nodiscard]] bool fill(std::string_view text) const noexcept {
    return descriptor_ >= 0 && write_all(descriptor_, text);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  int descriptor_;
};

std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) text += " " + name;
  return text;
}

// Returns true if a listener can use the file. A usable file has a key, and the key's certificate with its
// chain.
bool is_usable(const std::string& file) {
  const net::TlsContext context(SSL_CTX_new(TLS_server_method()));
  return !context ||
         (!net::take_certificate(context.get(), file) && !net::take_private_key(context.get(), file, file));
}

// Returns the name of the retry file. It contains a hash of all names and of the authority's URL. So weirs
// that share the folder by mistake have different files, even if their first names are equal.
std::string retry_file(const std::string& folder, const Names& names, const std::string& directory) {
  constexpr std::size_t kHash = 12, kMostName = 200;  // letters; a file's name has at most 255
  return folder + "/" + names.front().substr(0, kMostName) + "." +
         base64url(sha256(directory + joined(sorted(names)))).substr(0, kHash) + ".retry";
}

}  // namespace

Folder::Lock::~Lock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

base::Result<void> Folder::make() const {
  std::error_code fault;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), fault);
  for (const auto& folder : {path_, path_ + "/challenges"})
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return system_error("make the folder", folder);
  if (::access(path_.c_str(), R_OK | W_OK | X_OK) != 0) return system_error("write in the folder", path_);
  struct stat found {};
  if (::stat(path_.c_str(), &found) != 0) return system_error("look at the folder", path_);
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return base::Error{"others than its owner may write in the folder \"" + path_ +
                       "\", which has private keys; expected " +
                       "chmod 700, or the name of a folder in it, which weir makes"};
  return {};
}

base::Result<std::optional<Folder::Lock>> Folder::lock() const {
  const auto file = path_ + "/lock";
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) return system_error("open", file);
  Lock lock(descriptor);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    remove_old_drafts();
    return std::optional<Lock>(std::move(lock));
  }
  if (errno == EWOULDBLOCK) return std::optional<Lock>();
  return system_error("lock", file);
}

// Removes drafts that killed weirs have left. Keeps drafts of the last hour: a weir that starts may be
// writing a placeholder, without the lock.
void Folder::remove_old_drafts() const {
  const auto latest = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::error_code fault;
  for (std::filesystem::directory_iterator each(path_, fault), end; !fault && each != end;
       each.increment(fault)) {
    std::error_code ignored;
    if (each->path().filename().string().starts_with(kDraft) && each->last_write_time(ignored) < latest)
      std::filesystem::remove(each->path(), ignored);
  }
}

base::Result<void> Folder::check_room() const {
  const Draft draft(path_);
  if (!draft.fill(std::string(kRoom, '\n'))) return system_error("write a file in the folder", path_);
  return {};
}

base::Result<void> Folder::write(const std::string& file, std::string_view text) const {
  const Draft draft(path_);
  if (!draft.fill(text) || ::rename(draft.path().c_str(), file.c_str()) != 0)
    return system_error("write", file);
  return {};
}

base::Result<Key> Folder::account() const {
  const auto file = path_ + "/account.pem";
  if (::access(file.c_str(), F_OK) == 0 || errno != ENOENT) {
    const auto text = net::read_file(file);
    if (!text) return base::Error{"cannot read \"" + file + "\": " + text.error().message};
    auto key = key_of_pem(*text);
    if (!key) return base::Error{"cannot use \"" + file + "\": " + key.error().message};
    return key;
  }
  auto key = make_key();
  if (!key) return key.error();
  if (const auto written = write(file, to_pem(*key)); !written) return written.error();
  return key;
}

base::Result<void> Folder::keep(const Names& names, const std::string& directory,
                                std::string_view pem) const {
  return write(certificate_file(path_, names), std::string(kFirstLine) + directory + "\n" + std::string(pem));
}

base::Result<void> Folder::keep_placeholder(const Names& names) const {
  const auto file = certificate_file(path_, names);
  if (::access(file.c_str(), F_OK) == 0 || errno != ENOENT) {
    if (!net::read_file(file) || is_usable(file)) return {};  // the listener reports what it cannot read
    ::unlink(file.c_str());
  }
  const auto pem = make_placeholder(names);
  if (!pem) return pem.error();
  const Draft draft(path_);
  // link(2) does not replace the file if another weir has written it in the meantime
  if (!draft.fill(*pem) || (::link(draft.path().c_str(), file.c_str()) != 0 && errno != EEXIST))
    return system_error("write", file);
  return {};
}

std::optional<Retry> Folder::retry(const Names& names, const std::string& directory) const {
  const auto text = net::read_file(retry_file(path_, names, directory));
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  Retry retry;
  std::int64_t next = 0;
  if (!(words >> retry.failures >> next)) return std::nullopt;
  retry.next = SysTime(std::chrono::seconds(next));
  return retry;
}

base::Result<void> Folder::keep_retry(const Names& names, const std::string& directory,
                                      const Retry& retry) const {
  return write(retry_file(path_, names, directory),
               std::to_string(retry.failures) + " " + std::to_string(retry.next.time_since_epoch().count()) +
                   " " + directory + joined(names) + "\n");
}

std::vector<PendingChallenge> Folder::challenges() const {
  std::vector<PendingChallenge> found;
  std::error_code fault;
  for (std::filesystem::directory_iterator each(path_ + "/challenges", fault), end;
       !fault && each != end && found.size() < kMostChallenges; each.increment(fault)) {
    PendingChallenge challenge{.token = each->path().filename().string(), .name = {}, .authorization = {}};
    const auto text = is_token(challenge.token) ? net::read_file(each->path().string())
                                                : base::Result<std::string>(base::Error{"a draft"});
    if (!text) continue;
    std::istringstream words(*text);
    std::string kind;
    if (!(words >> kind >> challenge.name >> challenge.authorization)) continue;
    challenge.kind =
        kind == name_of(ChallengeKind::Http01) ? ChallengeKind::Http01 : ChallengeKind::TlsAlpn01;
    found.push_back(std::move(challenge));
  }
  std::sort(found.begin(), found.end(),
            [](const PendingChallenge& a, const PendingChallenge& b) { return a.token < b.token; });
  return found;
}

base::Result<void> Folder::publish(const PendingChallenge& challenge) const {
  return write(
      path_ + "/challenges/" + challenge.token,
      std::string(name_of(challenge.kind)) + " " + challenge.name + " " + challenge.authorization + "\n");
}

void Folder::withdraw_all() const {
  std::error_code fault;
  for (std::filesystem::directory_iterator each(path_ + "/challenges", fault), end; !fault && each != end;
       each.increment(fault)) {
    std::error_code ignored;
    std::filesystem::remove(each->path(), ignored);
  }
}

std::string directory_in(std::string_view pem) {
  if (!pem.starts_with(kFirstLine)) return {};
  const auto rest = pem.substr(kFirstLine.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

}  // namespace weir::acme
