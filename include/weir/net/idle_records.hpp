// How many of a peer's TLS records carry no data: KeyUpdates, tickets, alerts, offers to negotiate anew, empty
// ones. OpenSSL reads on through all that is there before it returns, and a KeyUpdate of 27 octets costs it as much
// as a whole request: who sends nothing else would have the worker to itself.
//
// Belongs to one connection, and stays where it was made.
#pragma once

#include <algorithm>

#include <openssl/ssl.h>

namespace weir::net {

class IdleRecords {
 public:
  // So many more of them than of records with data are heard out. OpenSSL takes as many empty ones in a row.
  static constexpr unsigned kMost = 32;

  IdleRecords() = default;
  IdleRecords(const IdleRecords&) = delete;
  IdleRecords& operator=(const IdleRecords&) = delete;

  // Counts what `ssl` receives from now on, the handshake being over, for as long as it is read. Of one that passes
  // the bound no record is looked at any more: what SSL_read() says of it is no end that the peer has told of.
  void watch(SSL* ssl) noexcept {
    SSL_set_msg_callback_arg(ssl, this);
    SSL_set_msg_callback(ssl, note_record);
  }
  // A read has brought data.
  void note_data() noexcept { surplus_ -= std::min(surplus_, 2U); }

  [[nodiscard]] bool too_many() const noexcept { return surplus_ > kMost + 1; }  // the last one may bring data

 private:
  // SSL_CTX_set_msg_callback(3).
  static void note_record(int sent, int, int type, const void*, std::size_t, SSL* ssl, void* records) noexcept {
    auto& self = *static_cast<IdleRecords*>(records);
    if (sent != 0 || type != SSL3_RT_HEADER) return;
    ++self.surplus_;
    if (self.too_many()) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
  }

  unsigned surplus_ = 0;  // records, less two for each read of data: one for its own, one to make up for another
};

}  // namespace weir::net
