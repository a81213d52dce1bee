//===- Collectives.h - Sums over ranks in a fixed order ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_TRANSPORT_COLLECTIVES_H
#define REPRISE_RUNTIME_TRANSPORT_COLLECTIVES_H

#include "RowSlots.h"
#include "Transport.h"

#include "reprise/ABI/ElementFormat.h"

namespace reprise::runtime {

/// What is summed: in f32, and a sum of bf16 is rounded once.
enum class Number { F32 = REPRISE_F32, BF16 = REPRISE_BF16 };

/// The bytes of one.
inline int64_t sizeOf(Number number) {
  return repriseElementBytes(int32_t(number));
}

/// The runs of so many groups of micro-batches: one for each power of two that
/// adds up to them.
int countRuns(int64_t groups);

/// `out[i]` becomes the sum over `parts` of `parts[p][i]`, each addition
/// rounded to f32, by the binary tree that splits `numParts` at the largest
/// power of two below it: ((0 + 1) + (2 + 3)) + 4. With `groups` the parts are
/// sums of groups, of ranks that have so many each, in runs: first those of all
/// ranks of the largest power of two of groups, then of the next. The tree is
/// that over the groups of all ranks, so each number of ranks gets the bits of
/// one rank that has them all. `out` may be one of the parts.
void sumTree(Number number, void *out, const void *const *parts, int numParts,
             int64_t groups, int64_t count);

/// Ranks that are equally far from each other: those along an axis of a mesh.
struct Group {
  int first, stride, size;
  /// Other ranks sum nothing that has to be equal to what these sum.
  bool isApart = false;
  /// Of what is summed in place: groups of micro-batches of a member, which has
  /// a term for each of their runs.
  int64_t groups = 1;

  /// The rank of member `i`.
  int rankOf(int i) const { return first + i * stride; }
  /// The member that `rank` is.
  int memberOf(int rank) const { return (rank - first) / stride; }
};

/// Elements in a row.
struct Span {
  void *values;
  int64_t count;
};

/// A value that ranks have equal parts of: `count` times there is a block of
/// `elements` of the first rank, behind it that of the second, and so on. The
/// part of one rank is its blocks, one behind the other.
struct Blocks {
  int64_t count, elements;
};

/// Sums over the members of a group that an engine makes by itself, in an order
/// of its own: their bits are not fixed, but equal for all members. This rank
/// is one of several members.
class EngineSums {
public:
  EngineSums() = default;
  EngineSums(const EngineSums &) = delete;
  EngineSums &operator=(const EngineSums &) = delete;

  /// Of all elements of spans, in place.
  virtual bool allReduce(const Group &group, const char *what,
                         const Span *spans, int numSpans, Error &error) = 0;
  /// Of this rank's part of the whole.
  virtual bool reduceScatter(const Group &group, const char *what,
                             Blocks blocks, const void *whole, void *part,
                             Error &error) = 0;
  /// Of the member's share of each span, in place; elsewhere may be anything.
  virtual bool reduceShares(const Group &group, const char *what,
                            const Span *spans, int numSpans, Error &error) = 0;

protected:
  ~EngineSums() = default; // Nobody owns them through their base.
};

/// The memory that ranks do something together on, seen from one of them: the
/// host's, or that of a GPU. What is begun comes in order; it may be over
/// later.
class RankMemory {
public:
  RankMemory() = default;
  RankMemory(const RankMemory &) = delete;
  RankMemory &operator=(const RankMemory &) = delete;

  virtual int rank() const = 0;
  /// As `Transport::exchange`, with limited patience. What is sent to a rank is
  /// cut in the same parcels there.
  virtual bool exchange(const char *what, const Parcel *sends, int numSends,
                        const Parcel *receives, int numReceives,
                        Error &error) = 0;
  /// As `Transport::send` and `Transport::receive`.
  virtual bool send(const char *what, const LaneParcel &parcel,
                    Error &error) = 0;
  virtual bool receive(const char *what, const LaneParcel &parcel,
                       Error &error) = 0;
  /// Whether something makes sums over some groups in place of `sum`.
  virtual bool hasEngineSums() const { return false; }
  /// What makes those of these numbers over the group; null: nothing does.
  virtual EngineSums *engineSums(const Group & /*group*/, Number /*number*/) {
    return nullptr;
  }
  /// As `sumTree`.
  virtual bool sum(Number number, void *out, const void *const *parts,
                   int numParts, int64_t groups, int64_t count,
                   Error &error) = 0;
  /// The places are apart, or the same.
  virtual bool copy(void *to, const void *from, size_t size, Error &error) = 0;
  /// Makes them zero.
  virtual bool clear(void *bytes, size_t size, Error &error) = 0;
  // As the functions of RowSlots.h.
  virtual bool fillSlots(const RowSlots &slots, Error &error) = 0;
  virtual bool emptySlots(const RowSlots &slots, Error &error) = 0;
  virtual bool findOwnOffsets(const int32_t *all, int64_t experts,
                              int64_t members, int64_t self, int32_t *own,
                              Error &error) = 0;

protected:
  ~RankMemory() = default; // Nobody owns one through its base.
};

/// The host's.
class HostMemory final : public RankMemory {
public:
  explicit HostMemory(Transport &transport) : transport(transport) {}

  int rank() const override { return transport.rank(); }
  bool exchange(const char *what, const Parcel *sends, int numSends,
                const Parcel *receives, int numReceives, Error &error) override;
  bool send(const char *what, const LaneParcel &parcel, Error &error) override {
    return transport.send(what, parcel, error);
  }
  bool receive(const char *what, const LaneParcel &parcel,
               Error &error) override {
    return transport.receive(what, parcel, error);
  }
  bool sum(Number number, void *out, const void *const *parts, int numParts,
           int64_t groups, int64_t count, Error &error) override;
  bool copy(void *to, const void *from, size_t size, Error &error) override;
  bool clear(void *bytes, size_t size, Error &error) override;
  bool fillSlots(const RowSlots &slots, Error &error) override;
  bool emptySlots(const RowSlots &slots, Error &error) override;
  bool findOwnOffsets(const int32_t *all, int64_t experts, int64_t members,
                      int64_t self, int32_t *own, Error &error) override;

private:
  Transport &transport;
};

/// All elements of `spans` become the sums of those of all members of `group`,
/// this rank among them, by `sumTree` in order of the members: an exchange of
/// parts, a sum of one's own part, and an exchange of sums. Each rank sends and
/// receives 2 (n-1)/n of the bytes. `spans` have the same sizes everywhere.
/// Here and below, the engine sums in place of this if the memory says so.
///
/// Where the group's `groups` have several runs, spans are the terms of each
/// sum: those of the first run, then those of the next, and so on; the last
/// become the sums.
///
/// \param what       names the operation in errors.
/// \param workspace  what is summed at a time, at least one element for each
///                   term of each member, of the same numbers.
bool allReduce(RankMemory &memory, const Group &group, const char *what,
               Number number, const Span *spans, int numSpans, Span workspace,
               Error &error);

/// `whole` becomes the parts of all members of `group`, in their order. Each
/// rank sends and receives n - 1 parts.
bool allGather(RankMemory &memory, const Group &group, const char *what,
               Number number, Blocks blocks, const void *part, void *whole,
               Error &error);

/// `part` becomes this rank's part of the sum of all members' `whole`, by
/// `sumTree` in order of the members. Each rank sends and receives n - 1 parts.
///
/// \param workspace  as of `allReduce`.
bool reduceScatter(RankMemory &memory, const Group &group, const char *what,
                   Number number, Blocks blocks, const void *whole, void *part,
                   Span workspace, Error &error);

/// The elements [begin, end) of `count` in a row that are the share of a member
/// of a group of `size`.
struct Share {
  int64_t begin, end;
};
Share shareOf(int64_t count, int member, int size);

/// Of each of `spans` this member's share becomes the sum over all members, as
/// of `allReduce`, of several terms in the last, and all else zero. Each rank
/// sends and receives (n-1)/n of the bytes.
bool reduceShares(RankMemory &memory, const Group &group, const char *what,
                  Number number, const Span *spans, int numSpans,
                  Span workspace, Error &error);

/// `whole` becomes the shares of all members, each of which has its own in
/// `share`. Each rank sends its share n - 1 times.
bool gatherShares(RankMemory &memory, const Group &group, const char *what,
                  Number number, const void *share, Span whole, Error &error);

/// Gives every member of `group` the `size` bytes of the first, which they wait
/// for without a limit.
bool broadcast(Transport &transport, const Group &group, const char *what,
               void *bytes, size_t size, Error &error);

/// Gives rank 0 the `size` bytes of all ranks, in their order, in `all`, which
/// counts there. They wait without a limit.
bool collect(Transport &transport, const char *what, const void *own, void *all,
             size_t size, Error &error);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_TRANSPORT_COLLECTIVES_H
