// The memory that OpenSSL allocates.
//
// A TLS handshake allocates and frees several hundred blocks, some of them of 16 KiB. glibc's malloc keeps
// few of the small ones for a thread; for the others it locks a heap, merges free chunks and splits them
// again.
#pragma once

namespace weir::net {

// Makes OpenSSL reuse memory: each thread keeps up to 1 MiB of the blocks that OpenSSL frees there. Must be
// called before any other use of OpenSSL. Returns false, and changes nothing, if OpenSSL already has memory,
// or in a build with a sanitizer, which finds a use after free only in memory that is not reused.
bool recycle_tls_memory() noexcept;

}  // namespace weir::net
