//===- Network.cpp - A stand-in for libnccl.so.2 --------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks are processes of this machine that share a mapping without a name: the
// first one makes it, and the id of the run says where the others find it. It
// is gone with them. Each ordered pair of ranks has a ring of bytes in it.
//
// A group of sends and receives is one piece of work on its stream. It is put
// there late, when the state of the communicator is asked for: whoever goes on
// without asking has other work before it. A send is over when its receiver has
// taken it all, and no sooner. What is received into is spoilt when the group
// begins. Sends and receives between two ranks match in order; a size, a type
// or an operation that differs, buffers that overlap within a group, ranks that
// wait for each other in a circle, and two ranks on one GPU are errors of the
// communicator of every rank, and the text goes to standard error. What fails
// never ends until it is aborted. As in the library, ranks whose NCCL_HOSTID
// differs are on different machines, and so on different GPUs.
//
// Sums, of f32 alone, are sends and receives of what is summed, and are over
// when all ranks have called them. Terms are added as around a ring, which
// begins behind the rank that has the sum, or of an all-reduce, one of as many
// equal pieces as there are ranks: in another order than the program's own.
//
// As in the library, a communicator does not end while a group of it is under
// way, or is part of a graph that has not been destroyed: its state stays "in
// progress" when it is finalized, and the call does not return when it is
// aborted, which lets groups of this communicator end and none of others. After
// two seconds that is an error, which ends the process.
//
// Blocks of kernels that wait stay on the GPU, one on a multiprocessor at
// worst. So several communicators of a rank may have as many as there are of
// these, and no more, and all ranks of one need the same number.
//
// The environment says what the machine is like:
//
//   REPRISE_STANDIN_NCCL=VERSION     the library's, default 21803
//   REPRISE_STANDIN_NETWORK=KIND:RANK:NUMBER
//                                    what happens to a group of a rank, from 1
//                                    on, whatever ranks it is among: "error"
//                                    fails there, "hang" never ends
//
//===----------------------------------------------------------------------===//

#include "StandIn.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace reprise::runtime;
using namespace reprise::standin;

static constexpr NcclResult kSystemError = 2, kInternalError = 3,
                            kInvalidArgument = 4, kInvalidUsage = 5,
                            kInProgress = kNcclInProgress;
static constexpr int kMostRanks = 16;
/// What the library takes of the GPU for each rank that it talks to.
static constexpr long kBytesOfPeer = 3 << 20;

//===----------------------------------------------------------------------===//
// What ranks share
//===----------------------------------------------------------------------===//

namespace {
/// What ranks do together in a transfer.
enum class Operation : uint64_t { Transfer, AllReduce, ReduceScatter, Reduce };
constexpr const char *kOperationNames[] = {
    "", " for an all-reduce", " for a reduce-scatter", " for a reduce"};

/// Before the bytes of a send.
struct Header {
  uint64_t count;
  uint64_t type;
  Operation operation;
};

/// Bytes from one rank to another: byte n of all is at `n % kRoom`.
struct Channel {
  static constexpr size_t kRoom = 64 << 10;
  std::atomic<uint64_t> written, read;
  char bytes[kRoom];

  size_t write(const char *from, size_t size) {
    uint64_t at = written.load(), room = kRoom - (at - read.load());
    size_t some = size_t(std::min<uint64_t>(size, room));
    for (size_t i = 0; i < some; ++i)
      bytes[(at + i) % kRoom] = from[i];
    written.store(at + some);
    return some;
  }
  size_t take(char *to, size_t size) {
    uint64_t at = read.load(), there = written.load() - at;
    size_t some = size_t(std::min<uint64_t>(size, there));
    for (size_t i = 0; i < some; ++i)
      to[i] = bytes[(at + i) % kRoom];
    read.store(at + some);
    return some;
  }
};

/// What a rank is doing.
struct State {
  std::atomic<int> device;      ///< One more than its number; 0: not there yet.
  std::atomic<size_t> machine;  ///< By the name that the rank gives it.
  std::atomic<uint64_t> groups; ///< Begun or ended.
  /// Whether it waits to send something to a rank, or to receive from it.
  std::atomic<bool> sends[kMostRanks], receives[kMostRanks];
};

struct Shared {
  std::atomic<int> size, numFinished, code;
  std::atomic<int> mostBlocks; ///< Of each rank; 0: none has come.
  char text[256];
  State states[kMostRanks];
  Channel channels[kMostRanks][kMostRanks];
};

/// An id of a run: where the mapping is found.
struct Place {
  char path[64];
};
static_assert(sizeof(Place) <= sizeof(NcclId));

using Clock = std::chrono::steady_clock;

struct Communicator {
  Shared *shared = nullptr;
  int rank = 0, size = 0, mostBlocks = 0;
  bool isConnected = false, isFinishing = false;
  std::atomic<bool> isAborted = false;
  std::vector<bool> peers; ///< Those whose memory has been taken.
  std::vector<std::function<void()>> waiting; ///< To be put on a stream.
  size_t numGroups = 0, numSums = 0;
  size_t numLiving = 0; ///< Groups that are under way, or in a graph.

  NcclResult fail(NcclResult code, const std::string &why) {
    int none = 0;
    if (shared->code.compare_exchange_strong(none, -1)) {
      snprintf(shared->text, sizeof(shared->text), "%s", why.c_str());
      fprintf(stderr, "stand-in: NCCL: %s\n", why.c_str());
      shared->code.store(code);
    }
    while (shared->code < 0) // Another rank is writing.
      usleep(50);
    return code;
  }
  NcclResult failure() const { return std::max(shared->code.load(), 0); }
};

/// This process: its rank among all, and the groups that it has begun.
struct {
  int rank = -1;
  size_t numGroups = 0;
  int numCommunicators = 0, numBlocks = 0; ///< That have not ended.
} process;

/// A send or a receive of a group.
struct Transfer {
  bool isSend;
  char *bytes;
  size_t count, size;
  int type, peer;
  size_t done = 0;    ///< Of the header, then of the bytes.
  Header header = {}; ///< As it comes.
  uint64_t end = 0;   ///< Of a send: where its last byte is in the channel.
  Operation operation = Operation::Transfer;
};

/// A sum of f32 of a group.
struct Sum {
  Operation operation;
  const char *from;
  char *to;
  size_t count; ///< Of `to`.
  int root = -1;

  bool writes(int rank) const { return root < 0 || root == rank; }
  size_t bytesTo() const { return count * sizeof(float); }
  size_t bytesFrom(int ranks) const {
    return bytesTo() *
           size_t(operation == Operation::ReduceScatter ? ranks : 1);
  }
};

/// One that runs.
struct RunningSum {
  RunningSum(const Sum &sum, int rank, int ranks)
      : sum(sum), rank(rank), own(sum.bytesFrom(ranks)),
        parts(size_t(ranks), std::vector<char>(sum.bytesTo())) {}

  void addTransfers(std::vector<Transfer> &transfers);
  void begin();
  void end();
  /// Where the terms of `other` are in what this rank has.
  size_t placeOf(int other) const {
    return sum.operation == Operation::ReduceScatter
               ? size_t(other) * sum.bytesTo()
               : 0;
  }
  void addUp(size_t first, size_t last, int behind);

  Sum sum;
  int rank;
  std::vector<char> own;                ///< As it was when the group began.
  std::vector<std::vector<char>> parts; ///< What the others have.
};
} // namespace

static std::string nameOf(const Transfer &transfer, int rank) {
  return "rank " + std::to_string(rank) +
         (transfer.isSend ? " sends " : " receives ") +
         std::to_string(transfer.count) + " of type " +
         std::to_string(transfer.type) + (transfer.isSend ? " to" : " from") +
         " rank " + std::to_string(transfer.peer) +
         kOperationNames[size_t(transfer.operation)];
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Moves what can be moved; whether it is over.
static bool moveSend(Communicator &own, Transfer &transfer) {
  Channel &channel = own.shared->channels[own.rank][transfer.peer];
  const Header header = {transfer.count, uint64_t(transfer.type),
                         transfer.operation};
  if (transfer.done < sizeof(header))
    transfer.done +=
        channel.write(reinterpret_cast<const char *>(&header) + transfer.done,
                      sizeof(header) - transfer.done);
  if (transfer.done >= sizeof(header)) {
    size_t at = transfer.done - sizeof(header);
    transfer.done += channel.write(transfer.bytes + at, transfer.size - at);
  }
  return transfer.done == sizeof(header) + transfer.size &&
         channel.read.load() == channel.written.load();
}

static bool moveReceive(Communicator &own, Transfer &transfer) {
  Channel &channel = own.shared->channels[transfer.peer][own.rank];
  Header &header = transfer.header;
  if (transfer.done < sizeof(header)) {
    transfer.done +=
        channel.take(reinterpret_cast<char *>(&header) + transfer.done,
                     sizeof(header) - transfer.done);
    if (transfer.done < sizeof(header))
      return false;
    if (header.count != transfer.count || int(header.type) != transfer.type ||
        header.operation != transfer.operation) {
      own.fail(kInternalError, nameOf(transfer, own.rank) + ", which sends " +
                                   std::to_string(header.count) + " of type " +
                                   std::to_string(header.type) +
                                   kOperationNames[size_t(header.operation)]);
      return false;
    }
  }
  size_t at = transfer.done - sizeof(header);
  transfer.done += channel.take(transfer.bytes + at, transfer.size - at);
  return transfer.done == sizeof(header) + transfer.size;
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// What a rank sends to another, and gets of it.
void RunningSum::addTransfers(std::vector<Transfer> &transfers) {
  for (int peer = 0; peer < int(parts.size()); ++peer) {
    Transfer transfer = {};
    transfer.count = sum.count, transfer.size = sum.bytesTo();
    transfer.type = kNcclF32, transfer.peer = peer;
    transfer.operation = sum.operation;
    if (peer == rank)
      continue;
    if (sum.writes(peer)) {
      transfer.isSend = true;
      transfer.bytes = own.data() + placeOf(peer);
      transfers.push_back(transfer);
    }
    if (sum.writes(rank)) {
      transfer.isSend = false;
      transfer.bytes = parts[size_t(peer)].data();
      transfers.push_back(transfer);
    }
  }
}

void RunningSum::begin() {
  memcpy(own.data(), sum.from, own.size());
  if (sum.writes(rank))
    memset(sum.to, 0xFF, sum.bytesTo());
}

/// The elements [first, last), of which the rank behind `behind` comes first.
void RunningSum::addUp(size_t first, size_t last, int behind) {
  const size_t ranks = parts.size();
  auto *to = reinterpret_cast<float *>(sum.to);
  for (size_t i = 1; i <= ranks; ++i) {
    auto *from = reinterpret_cast<const float *>(
        parts[(size_t(behind) + i) % ranks].data());
    for (size_t at = first; at < last; ++at)
      to[at] = i == 1 ? from[at] : to[at] + from[at];
  }
}

void RunningSum::end() {
  if (!sum.writes(rank))
    return;
  memcpy(parts[size_t(rank)].data(), own.data() + placeOf(rank), sum.bytesTo());
  const size_t pieces =
      sum.operation == Operation::AllReduce ? parts.size() : 1;
  for (size_t i = 0; i < pieces; ++i)
    addUp(sum.count * i / pieces, sum.count * (i + 1) / pieces,
          pieces > 1 ? int(i) : rank);
}

//===----------------------------------------------------------------------===//
// Groups that run
//===----------------------------------------------------------------------===//

namespace {
/// One of them.
class Group {
public:
  Group(std::shared_ptr<Communicator> owner, std::vector<Transfer> given,
        const std::vector<Sum> &wanted)
      : own(std::move(owner)), transfers(std::move(given)) {
    ++own->numLiving;
    sums.reserve(wanted.size());
    for (const Sum &sum : wanted)
      sums.emplace_back(sum, own->rank, own->size).addTransfers(transfers);
  }
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;
  ~Group() { --own->numLiving; }

  std::optional<std::string> poll();

private:
  void begin();
  bool move();
  void end();
  void lookForCircle();
  bool waitsInVain(int rank, int peer) const;

  std::shared_ptr<Communicator> own;
  std::vector<Transfer> transfers;
  std::vector<RunningSum> sums;
  bool hasBegun = false, isStuck = false;
  std::vector<bool> isOver;
  Clock::time_point moved;
  std::vector<uint64_t> groupsBefore;
};
} // namespace

void Group::begin() {
  hasBegun = true;
  isOver.assign(transfers.size(), false);
  for (RunningSum &sum : sums)
    sum.begin();
  own->numSums += sums.size();
  for (Transfer &transfer : transfers) {
    transfer.done = 0;
    if (!transfer.isSend)
      memset(transfer.bytes, 0xFF, transfer.size);
  }
  ++own->numGroups;
  ++process.numGroups;
  ++own->shared->states[own->rank].groups;
  moved = Clock::now();
  const char *event = getenv("REPRISE_STANDIN_NETWORK");
  char kind[8] = "";
  int rank = 0;
  size_t number = 0;
  if (!event || sscanf(event, "%7[a-z]:%d:%zu", kind, &rank, &number) != 3 ||
      rank != process.rank || number != process.numGroups)
    return;
  isStuck = true;
  if (!strcmp(kind, "error"))
    own->fail(kSystemError, "rank " + std::to_string(rank) +
                                ": the network fails, as it is told");
}

/// Moves the first transfers of each pair and direction; whether any moved.
bool Group::move() {
  State &state = own->shared->states[own->rank];
  bool isBusy[2][kMostRanks] = {}, hasMoved = false;
  for (size_t i = 0; i < transfers.size(); ++i) {
    Transfer &transfer = transfers[i];
    bool &busy = isBusy[transfer.isSend][transfer.peer];
    if (isOver[i] || busy)
      continue;
    (transfer.isSend ? state.sends : state.receives)[transfer.peer] = true;
    size_t before = transfer.done;
    isOver[i] = transfer.isSend ? moveSend(*own, transfer)
                                : moveReceive(*own, transfer);
    hasMoved |= transfer.done != before || isOver[i];
    busy = !isOver[i];
    if (isOver[i])
      (transfer.isSend ? state.sends : state.receives)[transfer.peer] = false;
  }
  return hasMoved;
}

void Group::end() {
  for (RunningSum &sum : sums)
    sum.end();
  ++own->shared->states[own->rank].groups;
}

/// Whether `rank` waits for `peer`, which does not wait for it.
bool Group::waitsInVain(int rank, int peer) const {
  State &waiting = own->shared->states[rank];
  State &other = own->shared->states[peer];
  return (waiting.sends[peer] && !other.receives[rank]) ||
         (waiting.receives[peer] && !other.sends[rank]);
}

/// After a fifth of a second in which nothing moved here: whether ranks wait
/// for each other in a circle, in groups that are the same a fifth of a second
/// later.
void Group::lookForCircle() {
  if (Clock::now() - moved < std::chrono::milliseconds(200))
    return;
  moved = Clock::now();
  std::vector<uint64_t> groups;
  for (int rank = 0; rank < own->size; ++rank)
    groups.push_back(own->shared->states[rank].groups);
  std::swap(groups, groupsBefore);
  if (groups != groupsBefore)
    return;
  std::vector<int> reached = {own->rank};
  for (size_t i = 0; i < reached.size(); ++i)
    for (int peer = 0; peer < own->size; ++peer) {
      if (!waitsInVain(reached[i], peer))
        continue;
      if (peer == own->rank) {
        own->fail(kInternalError,
                  "deadlock: rank " + std::to_string(own->rank) +
                      " and others wait for each other; sends and receives "
                      "that cross belong in one group");
        return;
      }
      if (std::find(reached.begin(), reached.end(), peer) == reached.end())
        reached.push_back(peer);
    }
}

std::optional<std::string> Group::poll() {
  if (own->isAborted)
    return std::string();
  if (!hasBegun)
    begin();
  if (isStuck || own->failure())
    return std::nullopt;
  if (move())
    moved = Clock::now();
  if (std::find(isOver.begin(), isOver.end(), false) != isOver.end()) {
    lookForCircle();
    return std::nullopt;
  }
  end();
  hasBegun = false; // A graph runs it again.
  return std::string();
}

namespace {
/// Bytes that a call of a group reads or writes.
struct Bytes {
  const char *begin;
  size_t size;
  bool isWritten;
  size_t call;
};
} // namespace

/// A sum may be made where its terms are, or apart from them.
static bool isInPlace(const Sum &sum, const Communicator &own) {
  const size_t place = sum.operation == Operation::ReduceScatter
                           ? size_t(own.rank) * sum.bytesTo()
                           : 0;
  return sum.to == sum.from + place;
}

static std::string checkBuffers(const std::vector<Transfer> &transfers,
                                const std::vector<Sum> &sums,
                                const Communicator &own) {
  std::vector<Bytes> all;
  for (size_t i = 0; i < transfers.size(); ++i)
    all.push_back(
        {transfers[i].bytes, transfers[i].size, !transfers[i].isSend, i});
  for (size_t i = 0; i < sums.size(); ++i) {
    // In place both are one; apart they may not overlap either.
    const size_t call = transfers.size() + 2 * i;
    const bool inPlace = isInPlace(sums[i], own);
    all.push_back({sums[i].from, sums[i].bytesFrom(own.size), false, call});
    if (sums[i].writes(own.rank))
      all.push_back({sums[i].to, sums[i].bytesTo(), true, call + !inPlace});
  }
  for (size_t i = 0; i < all.size(); ++i) {
    const Bytes &a = all[i];
    std::string wrong = checkAllocated("buffer", a.begin, a.size);
    if (!wrong.empty())
      return wrong;
    for (size_t j = 0; j < i; ++j) {
      const Bytes &b = all[j];
      if (a.call != b.call && (a.isWritten || b.isWritten) &&
          a.begin < b.begin + b.size && b.begin < a.begin + a.size)
        return "buffers of a group overlap";
    }
  }
  return "";
}

//===----------------------------------------------------------------------===//
// NCCL's functions
//===----------------------------------------------------------------------===//

static std::shared_ptr<Communicator> &of(NcclRanks ranks) {
  return *reinterpret_cast<std::shared_ptr<Communicator> *>(ranks);
}

/// The group that is open.
static struct {
  int depth = 0;
  std::shared_ptr<Communicator> own;
  CudaStream stream = nullptr;
  std::vector<Transfer> transfers;
  std::vector<Sum> sums;
} current;

/// Takes memory for those that it talks to for the first time.
static void meet(Communicator &own, int peer) {
  if (own.peers[size_t(peer)])
    return;
  own.peers[size_t(peer)] = true;
  takeMemory(kBytesOfPeer);
}

static int version() {
  const char *text = getenv("REPRISE_STANDIN_NCCL");
  return text ? atoi(text) : 21803;
}

/// Takes blocks of the GPU; what is wrong with that.
static std::string takeBlocks(Communicator &own, int mostBlocks) {
  const int most = version() < 22500 ? 32 : 64;
  own.mostBlocks = mostBlocks == kNcclUnset ? most : std::min(most, mostBlocks);
  int others = 0;
  if (!own.shared->mostBlocks.compare_exchange_strong(others, own.mostBlocks) &&
      others != own.mostBlocks)
    return "rank " + std::to_string(own.rank) + " has at most " +
           std::to_string(own.mostBlocks) + " blocks, and others " +
           std::to_string(others);
  process.numBlocks += own.mostBlocks;
  if (process.numCommunicators++ == 0 || process.numBlocks <= multiprocessors())
    return "";
  return std::to_string(process.numBlocks) + " blocks of " +
         std::to_string(process.numCommunicators) +
         " communicators may wait for each other on " +
         std::to_string(multiprocessors()) + " multiprocessors";
}

static void release(Communicator &own) {
  process.numBlocks -= own.mostBlocks;
  --process.numCommunicators;
  for (bool isMet : own.peers)
    takeMemory(isMet ? -kBytesOfPeer : 0);
  own.peers.assign(own.peers.size(), false);
}

static NcclResult closeGroup() {
  auto own = std::move(current.own);
  auto transfers = std::move(current.transfers);
  auto sums = std::move(current.sums);
  CudaStream stream = current.stream;
  current = {};
  if (!own)
    return 0;
  std::string wrong = checkBuffers(transfers, sums, *own);
  if (!wrong.empty())
    return own->fail(kInvalidUsage, wrong);
  for (const Transfer &transfer : transfers)
    meet(*own, transfer.peer);
  for (int peer = 0; peer < own->size && !sums.empty(); ++peer)
    if (peer != own->rank)
      meet(*own, peer);
  own->waiting.push_back([own, transfers, sums, stream] {
    auto group = std::make_shared<Group>(own, transfers, sums);
    enqueuePoll(stream, "a group of NCCL", [group] { return group->poll(); });
  });
  return kInProgress;
}

/// Whether the open group is of these ranks on this stream, from now on.
static bool join(const std::shared_ptr<Communicator> &own, CudaStream stream) {
  if (current.own && (current.own != own || current.stream != stream))
    return false;
  current.own = own;
  current.stream = stream;
  return true;
}

static NcclResult add(Transfer transfer, NcclRanks ranks, CudaStream stream) {
  static const size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  std::shared_ptr<Communicator> &own = of(ranks);
  if (transfer.type < 0 || transfer.type > 9 || transfer.peer < 0 ||
      transfer.peer >= own->size || transfer.peer == own->rank ||
      !join(own, stream))
    return kInvalidArgument;
  transfer.size = transfer.count * kSizes[transfer.type];
  current.transfers.push_back(transfer);
  return current.depth ? 0 : closeGroup();
}

static NcclResult addSum(const Sum &sum, int type, int operation,
                         NcclRanks ranks, CudaStream stream) {
  std::shared_ptr<Communicator> &own = of(ranks);
  if (type != kNcclF32 || operation != kNcclSum || sum.root >= own->size ||
      (sum.operation == Operation::Reduce && sum.root < 0) ||
      !join(own, stream))
    return kInvalidArgument;
  current.sums.push_back(sum);
  return current.depth ? 0 : closeGroup();
}

extern "C" {

NcclResult ncclGetVersion(int *version) {
  *version = ::version();
  return 0;
}

const char *ncclGetErrorString(NcclResult code) {
  static const char *const kTexts[] = {
      "no error",
      "unhandled cuda error",
      "unhandled system error",
      "internal error",
      "invalid argument",
      "invalid usage",
      "remote process exited or there was a network error",
      "NCCL operation in progress"};
  return code >= 0 && code <= kInProgress ? kTexts[code] : "unknown result";
}

const char *ncclGetLastError(NcclRanks ranks) {
  return ranks && of(ranks)->failure() ? of(ranks)->shared->text : "";
}

NcclResult ncclGetUniqueId(NcclId *id) {
  int file = memfd_create("stand-in of NCCL", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, sizeof(Shared)) != 0)
    return kSystemError;
  Place place = {};
  snprintf(place.path, sizeof(place.path), "/proc/%d/fd/%d", int(getpid()),
           file);
  memset(id, 0, sizeof(*id));
  memcpy(id, &place, sizeof(place));
  return 0;
}

NcclResult ncclCommInitRankConfig(NcclRanks *ranks, int count, NcclId id,
                                  int rank, NcclConfig *config) {
  Place place;
  memcpy(&place, &id, sizeof(place));
  if (count < 1 || count > kMostRanks || rank < 0 || rank >= count || !config ||
      config->size != sizeof(NcclConfig) || config->magic != kNcclConfigMagic ||
      config->version > 21800 || config->isBlocking != 0)
    return kInvalidArgument;
  int file = open(place.path, O_RDWR | O_CLOEXEC);
  void *memory = file < 0 ? MAP_FAILED
                          : mmap(nullptr, sizeof(Shared),
                                 PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    return kSystemError;
  close(file);
  auto own = std::make_shared<Communicator>();
  own->shared = static_cast<Shared *>(memory);
  own->rank = rank;
  own->size = count;
  own->peers.resize(size_t(count));
  if (process.rank < 0) // All ranks are connected first.
    process.rank = rank;
  *ranks = reinterpret_cast<NcclRanks>(
      new std::shared_ptr<Communicator>(std::move(own)));
  Communicator &made = *of(*ranks);
  const std::string wrong = takeBlocks(made, config->mostBlocks);
  if (!wrong.empty())
    return made.fail(kInvalidUsage, wrong);
  const char *machine = getenv("NCCL_HOSTID");
  State &state = made.shared->states[rank];
  state.machine = std::hash<std::string_view>()(machine ? machine : "");
  state.device = deviceNumber() + 1;
  return kInProgress;
}

/// All ranks are there, those of a machine each on its own GPU.
static NcclResult lookForOthers(Communicator &own) {
  for (int rank = 0; rank < own.size; ++rank) {
    const State &state = own.shared->states[rank];
    const int device = state.device;
    if (!device)
      return kInProgress;
    for (int other = 0; other < rank; ++other)
      if (own.shared->states[other].device == device &&
          own.shared->states[other].machine == state.machine)
        return own.fail(kInvalidUsage, "Duplicate GPU detected: rank " +
                                           std::to_string(rank) + " and rank " +
                                           std::to_string(other) +
                                           " both on CUDA device " +
                                           std::to_string(device - 1));
  }
  own.isConnected = true;
  return 0;
}

NcclResult ncclCommGetAsyncError(NcclRanks ranks, NcclResult *state) {
  Communicator &own = *of(ranks);
  *state = own.failure();
  if (*state)
    return 0;
  if (!own.isConnected) {
    *state = lookForOthers(own);
    return 0;
  }
  if (!own.waiting.empty()) {
    auto waiting = std::move(own.waiting);
    own.waiting.clear();
    for (auto &begin : waiting)
      begin();
    *state = kInProgress; // The next time it is there.
    return 0;
  }
  if (own.isFinishing &&
      (own.shared->numFinished < own.size || own.numLiving > 0))
    *state = kInProgress;
  return 0;
}

/// Lets groups end, which gives its memory back; whether all of them have.
static bool endGroups(Communicator &own) {
  static std::mutex oneAtATime; // Several threads may abort.
  std::lock_guard<std::mutex> lock(oneAtATime);
  goOn();
  if (own.numLiving > 0)
    return false;
  release(own);
  return true;
}

NcclResult ncclCommAbort(NcclRanks ranks) {
  Communicator &own = *of(ranks);
  own.isAborted = true;
  const Clock::time_point begin = Clock::now();
  for (int tries = 1; !endGroups(own); ++tries) {
    usleep(50);
    if (tries < 1000 || Clock::now() - begin < std::chrono::seconds(2))
      continue;
    fprintf(stderr,
            "stand-in: NCCL: rank %d of %d never aborts: %zu groups of it are "
            "in graphs that are not destroyed, or behind those of others\n",
            own.rank, own.size, own.numLiving);
    _exit(1);
  }
  return 0;
}

NcclResult ncclCommFinalize(NcclRanks ranks) {
  Communicator &own = *of(ranks);
  own.isFinishing = true;
  ++own.shared->numFinished;
  return kInProgress;
}

NcclResult ncclCommDestroy(NcclRanks ranks) {
  Communicator &own = *of(ranks);
  note("network: rank " + std::to_string(own.rank) + " of " +
       std::to_string(own.size) + ", " + std::to_string(own.numGroups) +
       " groups" +
       (own.numSums ? ", " + std::to_string(own.numSums) + " sums" : ""));
  release(own);
  return 0;
}

NcclResult ncclSend(const void *bytes, size_t count, int type, int peer,
                    NcclRanks ranks, CudaStream stream) {
  auto *from = static_cast<char *>(const_cast<void *>(bytes));
  return add({true, from, count, 0, type, peer}, ranks, stream);
}

NcclResult ncclRecv(void *bytes, size_t count, int type, int peer,
                    NcclRanks ranks, CudaStream stream) {
  return add({false, static_cast<char *>(bytes), count, 0, type, peer}, ranks,
             stream);
}

NcclResult ncclAllReduce(const void *from, void *to, size_t count, int type,
                         int operation, NcclRanks ranks, CudaStream stream) {
  return addSum({Operation::AllReduce, static_cast<const char *>(from),
                 static_cast<char *>(to), count},
                type, operation, ranks, stream);
}

NcclResult ncclReduceScatter(const void *from, void *part, size_t count,
                             int type, int operation, NcclRanks ranks,
                             CudaStream stream) {
  return addSum({Operation::ReduceScatter, static_cast<const char *>(from),
                 static_cast<char *>(part), count},
                type, operation, ranks, stream);
}

NcclResult ncclReduce(const void *from, void *to, size_t count, int type,
                      int operation, int root, NcclRanks ranks,
                      CudaStream stream) {
  return addSum({Operation::Reduce, static_cast<const char *>(from),
                 static_cast<char *>(to), count, root},
                type, operation, ranks, stream);
}

NcclResult ncclGroupStart() {
  ++current.depth;
  return 0;
}

NcclResult ncclGroupEnd() {
  if (current.depth == 0)
    return kInvalidUsage;
  return --current.depth ? 0 : closeGroup();
}

} // extern "C"
