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
// begins. Sends and receives between two ranks match in order; a size or a type
// that differs, buffers that overlap within a group, ranks that wait for each
// other in a circle, and two ranks on one GPU are errors of the communicator of
// every rank, and the text goes to standard error. What fails never ends until
// it is aborted.
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
#include <memory>
#include <mutex>
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
/// Before the bytes of a send.
struct Header {
  uint64_t count;
  uint64_t type;
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
  size_t numGroups = 0;
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
};
} // namespace

static std::string nameOf(const Transfer &transfer, int rank) {
  return "rank " + std::to_string(rank) +
         (transfer.isSend ? " sends " : " receives ") +
         std::to_string(transfer.count) + " of type " +
         std::to_string(transfer.type) + (transfer.isSend ? " to" : " from") +
         " rank " + std::to_string(transfer.peer);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Moves what can be moved; whether it is over.
static bool moveSend(Communicator &own, Transfer &transfer) {
  Channel &channel = own.shared->channels[own.rank][transfer.peer];
  const Header header = {transfer.count, uint64_t(transfer.type)};
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
    if (header.count != transfer.count || int(header.type) != transfer.type) {
      own.fail(kInternalError, nameOf(transfer, own.rank) + ", which sends " +
                                   std::to_string(header.count) + " of type " +
                                   std::to_string(header.type));
      return false;
    }
  }
  size_t at = transfer.done - sizeof(header);
  transfer.done += channel.take(transfer.bytes + at, transfer.size - at);
  return transfer.done == sizeof(header) + transfer.size;
}

namespace {
/// One that runs.
class Group {
public:
  Group(std::shared_ptr<Communicator> own, std::vector<Transfer> transfers)
      : own(std::move(own)), transfers(std::move(transfers)) {
    ++this->own->numLiving;
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
  bool hasBegun = false, isStuck = false;
  std::vector<bool> isOver;
  Clock::time_point moved;
  std::vector<uint64_t> groupsBefore;
};
} // namespace

void Group::begin() {
  hasBegun = true;
  isOver.assign(transfers.size(), false);
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

void Group::end() { ++own->shared->states[own->rank].groups; }

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

static std::string checkTransfers(const std::vector<Transfer> &transfers) {
  for (size_t i = 0; i < transfers.size(); ++i) {
    const Transfer &a = transfers[i];
    std::string wrong = checkAllocated("buffer", a.bytes, a.size);
    if (!wrong.empty())
      return wrong;
    for (size_t j = 0; j < i; ++j) {
      const Transfer &b = transfers[j];
      if ((!a.isSend || !b.isSend) && a.bytes < b.bytes + b.size &&
          b.bytes < a.bytes + a.size)
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
  CudaStream stream = current.stream;
  current = {};
  if (!own)
    return 0;
  std::string wrong = checkTransfers(transfers);
  if (!wrong.empty())
    return own->fail(kInvalidUsage, wrong);
  for (const Transfer &transfer : transfers)
    meet(*own, transfer.peer);
  own->waiting.push_back([own, transfers, stream] {
    auto group = std::make_shared<Group>(own, transfers);
    enqueuePoll(stream, "a group of NCCL", [group] { return group->poll(); });
  });
  return kInProgress;
}

static NcclResult add(Transfer transfer, NcclRanks ranks, CudaStream stream) {
  static const size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
  std::shared_ptr<Communicator> &own = of(ranks);
  if (transfer.type < 0 || transfer.type > 9 || transfer.peer < 0 ||
      transfer.peer >= own->size || transfer.peer == own->rank ||
      (current.own && (current.own != own || current.stream != stream)))
    return kInvalidArgument;
  transfer.size = transfer.count * kSizes[transfer.type];
  current.own = own;
  current.stream = stream;
  current.transfers.push_back(transfer);
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
  made.shared->states[rank].device = deviceNumber() + 1;
  return kInProgress;
}

/// All ranks are there, each on its own GPU.
static NcclResult lookForOthers(Communicator &own) {
  for (int rank = 0; rank < own.size; ++rank) {
    int device = own.shared->states[rank].device;
    if (!device)
      return kInProgress;
    for (int other = 0; other < rank; ++other)
      if (own.shared->states[other].device == device)
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
       " groups");
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
