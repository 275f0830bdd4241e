// Counts the TLS records from a peer that carry no data: KeyUpdates, tickets, alerts, renegotiation requests,
// empty records. OpenSSL processes all available records before SSL_read() returns. A KeyUpdate of 27 octets
// costs as much CPU time as a whole request, so a peer that sends only KeyUpdates would occupy the worker.
//
// Belongs to one connection. An IdleRecords object must not move in memory.
#pragma once

#include <algorithm>

#include <openssl/ssl.h>

namespace weir::net {

class IdleRecords {
 public:
  // The largest allowed surplus: the number of records without data minus the number of records with data.
  // OpenSSL has the same limit for consecutive empty records.
  static constexpr unsigned kMost = 32;

  IdleRecords() = default;
  IdleRecords(const IdleRecords&) = delete;
  IdleRecords& operator=(const IdleRecords&) = delete;

  // Counts the records that `ssl` receives from now on. Must be called after the handshake. When the bound
  // kMost is exceeded, OpenSSL reads no further record. SSL_read() then reports the end of the connection
  // although the peer has not closed it.
  void watch(SSL* ssl) noexcept {
    SSL_set_msg_callback_arg(ssl, this);
    SSL_set_msg_callback(ssl, note_record);
  }
  // Must be called after a read that returned data.
  void note_data() noexcept { surplus_ -= std::min(surplus_, 2U); }

  // Returns true if the bound kMost is exceeded. The comparison adds 1 to kMost, because the newest record
  // may contain data that the caller has not read yet.
  [[nodiscard]] bool too_many() const noexcept { return surplus_ > kMost + 1; }

 private:
  // The callback of SSL_CTX_set_msg_callback(3).
  static void note_record(int sent, int, int type, const void*, std::size_t, SSL* ssl,
                          void* records) noexcept {
    auto& self = *static_cast<IdleRecords*>(records);
    if (sent != 0 || type != SSL3_RT_HEADER) return;
    ++self.surplus_;
    if (self.too_many()) SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
  }

  // Each record adds 1. Each read that returned data subtracts 2: the record of the data, and one record
  // without data. Never falls below 0.
  unsigned surplus_ = 0;
};

}  // namespace weir::net
