#include "weir/proxy/worker.hpp"

#include "proxy/ask/permits.hpp"
#include "proxy/exchange/exchange_buffers.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <random>
#include <string_view>
#include <utility>

namespace weir::proxy {

namespace {

constexpr std::size_t kKeptBuffers = 256;
constexpr std::size_t kBlockSize = 32 << 10;
constexpr std::size_t kLargeBlock = 128 << 10;
constexpr std::size_t kMostLargeBlocks = 128;  // large blocks that one worker may use at once: 16 MiB

// The two hex digits of each octet.
constexpr auto kHexPairs = [] {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::array<std::array<char, 2>, 256> pairs{};
  for (std::size_t octet = 0; octet < pairs.size(); ++octet)
    pairs[octet] = {kHex[octet >> 4], kHex[octet & 15U]};
  return pairs;
}();

// Appends 16 hex digits. Uses a table for speed, because each generated request ID needs these digits.
void append_hex(std::string& out, std::uint64_t word) {
  std::array<char, 16> digits;
  for (std::size_t at = 0; at < digits.size(); at += 2, word <<= 8)
    std::memcpy(&digits[at], kHexPairs[word >> 56].data(), 2);
  out.append(digits.data(), digits.size());
}

}  // namespace

// Returns the size of a block (the memory of an inbox) in bytes. The largest allowed head fills at most half
// of a block, so the other half is free for octets of the body.
std::size_t Worker::block_size(const ServerSettings& server) noexcept {
  return std::max<std::size_t>(kBlockSize, 2 * static_cast<std::size_t>(server.max_head));
}

Worker::Worker(net::Executor an_executor, const Shared& shared,
               std::shared_ptr<const ConfigSnapshot> config_snapshot, redis::Store* a_redis,
               observe::Counters& some_counters, observe::AccessSink* an_access_log)
    : executor(an_executor),
      clock(shared.clock),
      table(shared.table),
      redis(a_redis),
      counters(some_counters),
      access_log(an_access_log),
      watchdog(an_executor),
      shaper(an_executor, shared.clock, shared.queue, shared.table, a_redis),
      load(net::Watchdog::kTick),
      in_flight(shared.in_flight),
      connections_per_ip(shared.connections_per_ip),
      body_memory(shared.body_memory),
      clock_step(shared.clock_step),
      spans(shared.spans),
      challenges(shared.challenges),
      idle_evictor(watchdog),
      worker_snapshots(an_executor, watchdog, std::move(config_snapshot)),
      blocks(block_size(config().server)),
      large_blocks(kLargeBlock, kMostLargeBlocks),
      block_trimmer_(*this),
      random_(std::random_device{}()),
      permit_owners_(shared.permit_owners) {
  free_buffers_.reserve(kKeptBuffers);
  append_hex(id_prefix_, (std::uint64_t{std::random_device{}()} << 32) | std::random_device{}());
  if (config().elastic) load_probe_.emplace(*this);
}

void Worker::begin(std::shared_ptr<const ConfigSnapshot> config_snapshot) {
  worker_snapshots.begin(std::move(config_snapshot));
  if (!config().elastic)
    load_probe_.reset();
  else if (!load_probe_)
    load_probe_.emplace(*this);
}

Worker::~Worker() = default;

void Worker::BlockTrimmer::on_tick() noexcept {
  const auto now = worker_.clock.now();
  worker_.blocks.trim(now);
  worker_.large_blocks.trim(now);
}

void Worker::LoadProbe::on_tick() noexcept {
  worker_.load.measure({.now = worker_.clock.now(),
                        .computed = thread_time(),
                        .queue = worker_.shaper.fullness(),
                        .in_flight = worker_.in_flight.fullness()});
}

std::unique_ptr<ExchangeBuffers> Worker::take_buffers() {
  if (free_buffers_.empty()) return std::make_unique<ExchangeBuffers>(*this);
  auto buffers = std::move(free_buffers_.back());
  free_buffers_.pop_back();
  return buffers;
}

void Worker::give_back(std::unique_ptr<ExchangeBuffers> buffers) {
  if (free_buffers_.size() >= kKeptBuffers) return;
  buffers->clear();
  free_buffers_.push_back(std::move(buffers));
}

Permits& Worker::permits() {
  if (!permits_) permits_ = std::make_unique<Permits>(*this, permit_owners_);
  return *permits_;
}

std::string_view Worker::http_date(base::TimePoint machine_now) {
  const auto second = std::chrono::floor<std::chrono::seconds>(machine_now);
  if (second != date_second_) {
    date_second_ = second;
    const std::time_t time = second.time_since_epoch().count();
    std::tm parts{};
    gmtime_r(&time, &parts);
    std::array<char, 40> text{};
    date_.assign(text.data(), std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return date_;
}

observe::TraceContext Worker::join_trace(std::string_view traceparent, const observe::Sampling& sampling) {
  observe::TraceChance random;
  for (auto& number : random) number = chance();
  return observe::join_trace(traceparent, sampling, random);
}

void Worker::make_request_id(std::string& out) {
  out = id_prefix_;
  append_hex(out, ++id_count_);
}

}  // namespace weir::proxy
