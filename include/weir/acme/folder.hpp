// The folder for the files that weir needs to order certificates (ACME). Several weirs may share it.
//
// - account.pem: the account's key.
// - NAME.pem: the key, the certificate and its chain. NAME is the first DNS name of the certificate.
// - NAME.HASH.retry: how many orders failed in a row, and when weir may order again. HASH is a hash of the
//   names and the authority.
// - challenges/TOKEN: a pending challenge, which every weir that shares the folder answers.
// - lock: the weir that orders locks this file (flock).
// - draft.XXXXXX: a file that weir is writing.
//
// weir replaces each file as a whole. Only the owner may read the files (mode 0600).
#pragma once

#include "weir/acme/jws.hpp"
#include "weir/acme/renewal.hpp"
#include "weir/acme/settings.hpp"
#include "weir/base/result.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weir::acme {

// A challenge that some weir has published and that the authority may check.
struct PendingChallenge {
  std::string token;
  ChallengeKind kind = ChallengeKind::Http01;
  std::string name;
  std::string authorization;  // the key authorization
  friend bool operator==(const PendingChallenge&, const PendingChallenge&) = default;
};

struct Retry {
  unsigned failures = 0;  // failed orders in a row
  SysTime next;           // when weir may order again
};

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  // A lock of the folder, as long as the object lives. If the process dies, the system releases the lock.
  class Lock {
   public:
    explicit Lock(int descriptor) noexcept : descriptor_(descriptor) {}
    Lock(Lock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    int descriptor_;
  };

  // Creates the folder and its subfolder with the mode 0700 if they are missing. Returns an error if others
  // than the owner may write in the folder.
  [[nodiscard]] base::Result<void> make() const;
  // Locks the folder, and removes drafts that are older than an hour. Returns nullopt if another weir has the
  // lock.
  [[nodiscard]] base::Result<std::optional<Lock>> lock() const;
  // Returns an error if a file as large as a certificate cannot be written, for example because the disk is
  // full.
  [[nodiscard]] base::Result<void> check_room() const;

  // Returns the account's key. Creates the key if the file is missing. REQUIRES the lock.
  [[nodiscard]] base::Result<Key> account() const;
  // Writes the certificate for the names, with its key in front. `directory`: the URL of the authority that
  // signed it.
  [[nodiscard]] base::Result<void> keep(const Names& names, const std::string& directory,
                                        std::string_view pem) const;
  // Writes a placeholder for the names if they have no file yet, or a file that no listener can use.
  [[nodiscard]] base::Result<void> keep_placeholder(const Names& names) const;

  // Returns what keep_retry() stored for this authority and these names; nullopt if it stored nothing.
  [[nodiscard]] std::optional<Retry> retry(const Names& names, const std::string& directory) const;
  [[nodiscard]] base::Result<void> keep_retry(const Names& names, const std::string& directory,
                                              const Retry& retry) const;

  [[nodiscard]] std::vector<PendingChallenge> challenges() const;
  // Writes the challenge to the subfolder. REQUIRES: is_token(challenge.token).
  [[nodiscard]] base::Result<void> publish(const PendingChallenge& challenge) const;
  void withdraw_all() const;

 private:
  void remove_old_drafts() const;
  [[nodiscard]] base::Result<void> write(const std::string& file, std::string_view text) const;

  std::string path_;
};

// Returns the URL of the authority in the text of a certificate's file; empty if weir did not write the file.
[[nodiscard]] std::string directory_in(std::string_view pem);

}  // namespace weir::acme
