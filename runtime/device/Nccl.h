//===- Nccl.h - Bytes between GPUs ------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_NCCL_H
#define REPRISE_RUNTIME_DEVICE_NCCL_H

#include "ConnectionBlocks.h"
#include "Gpu.h"
#include "runtime/base/List.h"
#include "runtime/transport/Transport.h"

namespace reprise::runtime {

/// A sum of f32 over all ranks, or over a group, that the library makes.
struct NcclSum {
  enum Kind {
    Whole, ///< All have all of it.
    Part,  ///< Each has its part.
    ToRoot ///< One has all of it.
  } kind;
  const void *from;
  void *to;     ///< The same place, or one apart.
  size_t count; ///< Of `to`.
  int root;     ///< The member that has it.
};

/// The GPUs of all ranks, connected by NCCL. It moves bytes, as work on the
/// device's stream, and adds nothing but what `NcclSums` lets it. Ranks are
/// started, watched and ended by a transport between their hosts, which also
/// brings them together here.
///
/// A second connection of all ranks, with a stream of its own, is for what runs
/// beside launches. Besides there are pairs: bytes go from the first
/// to the second, on a stream of each, and wait for nothing but each other.
///
/// Calls of the library return at once, and the host looks at how far it is: so
/// a rank whose peers are gone can give up.
class Nccl {
public:
  explicit Nccl(Gpu &device) : device(device) {}
  Nccl(const Nccl &) = delete;
  Nccl &operator=(const Nccl &) = delete;
  ~Nccl();

  /// Of those that are made from now on.
  void setBlocks(const ConnectionBlocks &most) { blocks = most; }

  /// Opens the library, connects this rank with all others, and lets the device
  /// look at the library whenever it waits. All ranks call it at once.
  bool connect(Transport &ranks, Error &error);
  bool isConnected() const { return all != nullptr; }

  /// Moves a few bytes between this rank and each of `peers`, so that the
  /// library takes the memory that it needs for them. They do the same at once.
  bool greet(const int *peers, int numPeers, Error &error);

  /// Begins to send and receive these parcels, of the device's memory, on its
  /// stream. They may cross. As for `Transport::exchange`, parcels between two
  /// ranks come in order.
  bool exchange(const char *what, const Parcel *sends, int numSends,
                const Parcel *receives, int numReceives, Error &error);

  /// Connects all ranks once more. They call it at once.
  bool connectBeside(Transport &ranks, Error &error);
  /// Exchanges are on the second connection from now on, behind what was begun
  /// on the device's stream; and on the first one again.
  bool goBeside(const char *what, Error &error);
  void comeBack() { exchangesBeside = false; }
  /// What exchanges are begun on.
  CudaStream stream() const {
    return exchangesBeside ? besideStream : device.stream();
  }

  /// The number of a new run of the library.
  bool makeId(NcclId &id, Error &error);

  /// Connects this rank, the first of a pair or the second, with the other,
  /// which calls it at once; pairs come in an order that all ranks have in
  /// common. Their numbers here count from 0.
  bool connectPair(const NcclId &id, bool isFirst, Error &error);
  CudaStream streamOf(int pair) const { return pairs[size_t(pair)].stream; }

  /// Connects this rank with others of a group, which call it at once, for what
  /// is on the stream of exchanges. Groups count from 0, on either stream.
  bool connectGroup(const NcclId &id, int member, int size, Error &error);
  /// Of sums.
  static constexpr int kAll = -1;
  /// Sums a few elements in each way, as `greet` moves bytes: over all ranks,
  /// or over the members of a group.
  bool greetSums(int group, Error &error);
  /// Begins sums over them, on the stream of exchanges.
  bool sum(const char *what, int group, const NcclSum *sums, int numSums,
           Error &error);

  /// Begins to send, as the first of a pair, or to receive, on its stream.
  bool move(const char *what, int pair, char *bytes, size_t size, Error &error);

  /// Ends the connections behind everything that was begun. All ranks call it.
  /// Like `giveUp` it does not return while a graph exists that has a part of
  /// theirs.
  bool disconnect(Error &error);

  /// Ends the connections with what is still under way.
  void giveUp();

  /// The bytes of all sends that were begun, or captured. Those of sums as if
  /// ranks were a ring.
  int64_t begunBytes() const { return numBegun; }

  int rank() const { return own; }
  int size() const { return hosts->size(); }     ///< How many ranks there are.
  int version() const { return libraryVersion; } ///< 21803 for 2.18.3.

private:
  struct Pair {
    NcclRanks ranks;
    CudaStream stream;
    bool isFirst;
  };

  /// Some of the ranks.
  struct Some {
    NcclRanks ranks;
    int size;
  };
  List<Some> &groups() { return exchangesBeside ? besideGroups : ownGroups; }

  const NcclLibrary &library() const { return device.nccl(); }
  template <typename Begin>
  bool meet(const char *what, size_t bytes, Begin begin, Error &error);
  template <typename Calls>
  bool together(NcclRanks ranks, const char *what, Calls calls, Error &error);
  bool check(NcclRanks ranks, NcclResult code, const char *what, Error &error);
  bool look(NcclRanks ranks, const char *what, NcclResult &state, Error &error);
  bool mayCome(const char *what, double waitedSeconds, Error &error);
  bool lookAtAll(double waitedSeconds, Error &error);
  bool settle(NcclRanks ranks, const char *what, Error &error);
  bool end(NcclRanks &ranks, const char *what, Error &error);
  bool order(const char *what, CudaStream first, CudaStream then, Error &error);

  NcclResult connectOne(NcclRanks &connection, int size, const NcclId &id,
                        int rank, int mostBlocks) const;
  bool connectAll(NcclRanks &connection, int size, const NcclId &id,
                  Error &error);

  Gpu &device;
  NcclRanks all = nullptr, beside = nullptr;
  CudaStream besideStream = nullptr;
  CudaEvent border = nullptr; ///< Between the two streams.
  bool exchangesBeside = false;
  List<Pair> pairs;
  List<Some> ownGroups, besideGroups;
  ConnectionBlocks blocks;
  NcclRanks asked = nullptr; ///< Of whom the library has not taken everything.
  Transport *hosts = nullptr;
  int own = 0, libraryVersion = 0;
  int64_t numBegun = 0;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_NCCL_H
