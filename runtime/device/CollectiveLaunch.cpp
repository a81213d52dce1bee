//===- CollectiveLaunch.cpp - What ranks do together in a launch ----------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CollectiveLaunch.h"

#include "CheckModel.h"
#include "runtime/base/List.h"
#include "runtime/base/Targets.h"
#include "runtime/transport/ExpertRows.h"
#include "runtime/transport/Lanes.h"
#include "runtime/transport/Mesh.h"

#include <algorithm>
#include <cinttypes>

using namespace reprise::runtime;

/// Of sums in place: the groups of micro-batches of a rank; else 1.
static int64_t groupsOf(const RepriseCollective &row) {
  const bool isInPlace = row.operation == REPRISE_COLLECTIVE_ALL_REDUCE ||
                         row.operation == REPRISE_COLLECTIVE_REDUCE_SHARES;
  return isInPlace ? std::max<int64_t>(1, row.blocks) : 1;
}

namespace {
/// A launch, and the rank that runs it.
struct Call {
  const RepriseModel &model;
  const RepriseLaunch &launch;
  const int rank;
  void *const *addresses = nullptr; ///< Of its buffers, when it runs.

  const RepriseCollective &row() const {
    return model.collectives[launch.callee];
  }
  Number number() const {
    return row().elementType == REPRISE_BF16 ? Number::BF16 : Number::F32;
  }
  const RepriseBuffer &buffer(int i) const {
    return model.buffers[launch.firstBuffer + i];
  }
  int last() const { return launch.numBuffers - 1; }
  Span span(int i) const {
    return {addresses[i], buffer(i).bytes / sizeOf(number())};
  }
  Blocks blocks() const { return {row().blocks, row().blockElements}; }
  /// The ranks along the axis that take part.
  Group group() const {
    Group all = groupOf(model, rank, row().axis);
    all.groups = groupsOf(row());
    if (row().numMembers == 0)
      return all;
    return {all.rankOf(row().firstMember), all.stride * row().memberStride,
            row().numMembers, /*isApart=*/false, all.groups};
  }
  /// Of a sum in place: those that this rank has of each.
  int terms() const { return countRuns(groupsOf(row())); }
  int sums() const { return last() / terms(); }
  bool check(int i, int64_t least, Error &error) const {
    return checkRange(launch.name, buffer(i), least, model.arenaBytes, error);
  }
};

/// What one value of `RepriseCollective::operation` means.
struct Operation {
  int32_t operation;
  int numBuffers; ///< 0: one or more.
  bool (*check)(const Call &call, Error &error);
  bool (*run)(const Call &call, RankMemory &memory, Error &error);

  /// The rest is of an `Exchange`. Null: it is none.
  const char *name = nullptr;
  /// The bytes of what all ranks have together, or of the terms of one; each
  /// rank sends its part of them to all others, and of whole sums once more.
  int64_t (*countBytes)(const Call &call) = nullptr;
  bool hasWholeSums = false;
  /// Null: its bytes are always the same.
  void (*shrink)(LoneLaunch &lone, int64_t ranks, int64_t divisor) = nullptr;
  /// The buffer of the offsets that it reads, if any, and whether these are of
  /// all ranks.
  int offsets = -1;
  bool areOfAll = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// A workspace, the last buffer, has a place for each term of each rank that
/// takes part.
static bool checkWorkspace(const Call &call, Error &error) {
  if (call.last() < 1)
    return error.set("damaged model: %s has a workspace and needs at least a "
                     "buffer before it",
                     call.launch.name);
  return call.check(call.last(), int64_t(4) * call.terms() * call.group().size,
                    error);
}

/// There are as many terms of each sum, which has their bytes.
static bool checkTerms(const Call &call, Error &error) {
  if (!checkWorkspace(call, error))
    return false;
  bool areAlike = call.row().blocks >= 0 && call.last() % call.terms() == 0;
  for (int i = 0; areAlike && i < call.last(); ++i)
    areAlike = call.buffer(i).bytes == call.buffer(i % call.sums()).bytes;
  return areAlike ||
         error.set("damaged model: %s needs %d terms of equal bytes for each "
                   "sum, with %" PRId64 " groups of a rank, but has %d",
                   call.launch.name, call.terms(), call.row().blocks,
                   call.last());
}

/// A part and the whole are as long as the blocks.
static bool checkBlocks(const Call &call, int part, int whole, Error &error) {
  constexpr int64_t kMost = int64_t(1) << 48;
  const auto [blocks, elements] = call.blocks();
  const int64_t ranks = call.group().size;
  if (blocks < 1 || elements < 1 || blocks > kMost / elements / ranks)
    return error.set("damaged model: %s has %" PRId64 " blocks of %" PRId64,
                     call.launch.name, blocks, elements);
  const int64_t bytes = blocks * elements * sizeOf(call.number());
  return call.check(part, bytes, error) &&
         call.check(whole, bytes * ranks, error);
}

static bool checkAllGather(const Call &call, Error &error) {
  return checkBlocks(call, 0, 1, error);
}

static bool checkReduceScatter(const Call &call, Error &error) {
  return checkBlocks(call, 1, 0, error) && checkWorkspace(call, error);
}

/// There is room for a share.
static bool checkShare(const Call &call, Error &error) {
  const int64_t bytes = sizeOf(call.number());
  const int64_t count = call.buffer(2).bytes / bytes;
  return call.check(2, bytes, error) &&
         call.check(0, shareOf(count, 0, call.group().size).end * bytes, error);
}

/// Experts are dealt evenly, and there is room for the offsets of all ranks.
static bool checkOffsets(const Call &call, int all, Error &error) {
  constexpr int64_t kMost = 1 << 20;
  const auto [experts, elements] = call.blocks();
  const int64_t ranks = call.group().size;
  if (experts < 1 || experts > kMost || experts % ranks != 0 || elements < 1 ||
      elements > kMost)
    return error.set("damaged model: %s has %" PRId64 " experts on %" PRId64
                     " ranks, and rows of %" PRId64,
                     call.launch.name, experts, ranks, elements);
  return call.check(all, 4 * ranks * (experts + 1), error);
}

/// There are rounds from the first one on, of some rows, but not where slots of
/// all rows are sent.
static bool checkRound(const Call &call, Error &error) {
  constexpr int64_t kMost = int64_t(1) << 40;
  const RepriseCollective &row = call.row();
  const bool isAll = row.roundRows == 0 && row.round == 0 && !row.keepsOthers;
  if (isAll || (!factsOf(call.model.target).sendsAllSlots &&
                row.roundRows > 0 && row.roundRows < kMost && row.round >= 0 &&
                row.round < kMost / row.roundRows))
    return true;
  return error.set("damaged model: %s has round %d of %" PRId64 " rows",
                   call.launch.name, row.round, row.roundRows);
}

static bool checkGatherOffsets(const Call &call, Error &error) {
  const int64_t experts = call.row().blocks;
  return checkRound(call, error) && checkOffsets(call, 1, error) &&
         call.check(0, 4 * (experts + 1), error) &&
         call.check(2, 4 * (experts / call.group().size + 1), error);
}

/// Where all slots are sent there is a workspace, for as many as rows have room
/// for where their experts are: once to send them, and twice to return them.
template <int there, int copies>
static bool checkRows(const Call &call, Error &error) {
  constexpr int kWorkspace = 3;
  const int64_t bytes = call.row().blockElements * sizeOf(call.number());
  const bool hasSlots = factsOf(call.model.target).sendsAllSlots;
  const int64_t ranks = call.group().size;
  if (call.launch.numBuffers != (hasSlots ? kWorkspace + 1 : kWorkspace))
    return error.set("damaged model: %s has %d buffers", call.launch.name,
                     call.launch.numBuffers);
  if (!checkRound(call, error) || !checkOffsets(call, 1, error) ||
      !call.check(0, bytes, error) || !call.check(2, bytes, error))
    return false;
  const int64_t rows = call.buffer(there).bytes / bytes;
  if (hasSlots && rows < ranks)
    return error.set("damaged model: %s has %" PRId64 " rows on %" PRId64
                     " ranks",
                     call.launch.name, rows, ranks);
  return !hasSlots ||
         call.check(kWorkspace, copies * (rows / ranks * ranks * bytes), error);
}

/// The buffer has a parcel, and the peer is another rank.
static bool checkTransfer(const Call &call, Error &error) {
  const RepriseCollective &row = call.row();
  if (!checkLane(call.model, row, call.launch.name, error))
    return false;
  if (call.group().rankOf(row.peer) == call.rank)
    return error.set("damaged model: %s needs another rank, but its peer %d is "
                     "rank %d itself",
                     call.launch.name, row.peer, call.rank);
  return call.check(0, parcelBytes(row), error);
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

/// Whether a schedule of a micro-batch has the launch.
static bool isOfMicroBatch(const RepriseModel &model,
                           const RepriseLaunch &launch) {
  return std::any_of(
      model.program, model.program + model.numEntries,
      [&](const RepriseEntry &entry) {
        const RepriseSchedule &schedule = model.schedules[entry.schedule];
        return entry.microBatch >= 0 && &launch >= schedule.launches &&
               &launch < schedule.launches + schedule.numLaunches;
      });
}

/// Whether ranks along `axis` have parts of the gradient in a buffer.
static bool isOfPartsAlong(const RepriseModel &model,
                           const RepriseBuffer &buffer, int axis) {
  return std::any_of(model.states, model.states + model.numStates,
                     [&](const RepriseState &state) {
                       bool isCut = false;
                       for (int dim = 0; dim < state.rank; ++dim)
                         isCut |= state.wholeExtents[dim] > 0 &&
                                  state.cutAxes[dim] == axis;
                       return isCut && state.kind == REPRISE_STATE_GRADIENT &&
                              !state.isElsewhere &&
                              state.buffer.offset == buffer.offset;
                     });
}

/// Whether ranks beside those of the group sum other values in buffer `i`:
/// those of other samples, or of other parts of a gradient. Else several groups
/// sum the same one, and their sums have to be equal to the bit.
static bool isApart(const Call &call, int i) {
  const SampleAxes axes = sampleAxesOf(call.model);
  if (!axes.areAll || call.row().numMembers != 0)
    return false;
  if (call.row().axis == axes.samples)
    return isOfPartsAlong(call.model, call.buffer(i), axes.parts);
  return call.row().axis == axes.parts && !call.row().isOnce &&
         isOfMicroBatch(call.model, call.launch);
}

/// The buffers before the workspace are summed in place, or are further terms:
/// first those that other ranks do not sum.
template <bool (*sum)(RankMemory &, const Group &, const char *, Number,
                      const Span *, int, Span, Error &)>
static bool runSum(const Call &call, RankMemory &memory, Error &error) {
  for (bool areApart : {true, false}) {
    List<Span> spans;
    const int sums = call.sums(), first = call.last() - sums;
    for (int i = 0; i < call.last(); ++i)
      if ((memory.hasEngineSums() && isApart(call, first + i % sums)) ==
              areApart &&
          !spans.push(call.span(i)))
        return error.set("no memory left for %d buffers of %s", call.last(),
                         call.launch.name);
    Group group = call.group();
    group.isApart = areApart;
    if (spans.size() > 0 &&
        !sum(memory, group, call.launch.name, call.number(), spans.begin(),
             int(spans.size()), call.span(call.last()), error))
      return false;
  }
  return true;
}

static bool runAllGather(const Call &call, RankMemory &memory, Error &error) {
  return allGather(memory, call.group(), call.launch.name, call.number(),
                   call.blocks(), call.addresses[0], call.addresses[1], error);
}

static bool runReduceScatter(const Call &call, RankMemory &memory,
                             Error &error) {
  Group group = call.group();
  group.isApart = memory.hasEngineSums() && isApart(call, 0);
  return reduceScatter(memory, group, call.launch.name, call.number(),
                       call.blocks(), call.addresses[0], call.addresses[1],
                       call.span(2), error);
}

static bool runGatherShares(const Call &call, RankMemory &memory,
                            Error &error) {
  return gatherShares(memory, call.group(), call.launch.name, call.number(),
                      call.addresses[0], call.span(2), error);
}

static bool runGatherOffsets(const Call &call, RankMemory &memory,
                             Error &error) {
  const Group group = call.group();
  auto *all = static_cast<int32_t *>(call.addresses[1]);
  auto *own = static_cast<int32_t *>(call.addresses[2]);
  const int64_t experts = call.row().blocks, rows = call.row().roundRows;
  if (!gatherOffsets(memory, group, call.launch.name, experts,
                     static_cast<const int32_t *>(call.addresses[0]), all, own,
                     error))
    return false;
  const int64_t sizes = experts / group.size + 1;
  return rows == 0 ||
         splitOffsets(call.launch.name, sizes - 1, rows,
                      call.buffer(2).bytes / 4 / sizes, own, error);
}

template <bool areSent>
static bool runRows(const Call &call, RankMemory &memory, Error &error) {
  const RepriseCollective &row = call.row();
  const ExpertRows rows = {row.blocks,
                           row.blockElements,
                           static_cast<const int32_t *>(call.addresses[1]),
                           row.round * row.roundRows,
                           row.roundRows,
                           row.keepsOthers != 0};
  const Span workspace = call.last() == 3 ? call.span(3) : Span();
  return (areSent ? sendRows : returnRows)(
      memory, call.group(), call.launch.name, call.number(), rows, call.span(0),
      call.span(2), workspace, error);
}

template <bool (RankMemory::*move)(const char *, const LaneParcel &, Error &)>
static bool runTransfer(const Call &call, RankMemory &memory, Error &error) {
  const RepriseCollective &row = call.row();
  const LaneParcel parcel = {call.group().rankOf(row.peer), row.lane,
                             static_cast<char *>(call.addresses[0]),
                             size_t(parcelBytes(row)), int(row.blocks)};
  return (memory.*move)(call.launch.name, parcel, error);
}

//===----------------------------------------------------------------------===//
// What is exchanged
//===----------------------------------------------------------------------===//

template <int whole>
static int64_t countWhole(const Call &call) {
  return call.buffer(whole).bytes;
}

static int64_t countTerms(const Call &call) {
  int64_t bytes = 0;
  for (int i = 0; i < call.last(); ++i)
    bytes += call.buffer(i).bytes;
  return bytes;
}

/// Terms go to one rank, and sums of as many to all.
static int64_t countTermsAndSums(const Call &call) {
  const int64_t terms = countTerms(call);
  return (terms + terms / call.terms()) / 2;
}

/// Where all slots are sent, these are `there`.
template <int there>
static int64_t countRows(const Call &call) {
  if (factsOf(call.model.target).sendsAllSlots)
    return call.buffer(there).bytes;
  return std::min(call.buffer(0).bytes, call.buffer(2).bytes);
}

/// A part in `divisor` of `count`, but at least `least`, and no more than there
/// is.
static int64_t partOf(int64_t count, int64_t least, int64_t divisor) {
  return std::min(count, std::max(least, count / divisor));
}

/// A part of the largest buffer is summed, of as many terms.
static void shrinkSum(LoneLaunch &lone, int64_t ranks, int64_t divisor) {
  const int64_t size = sizeOf(Number(lone.row.elementType));
  RepriseBuffer workspace = lone.buffers.back();
  RepriseBuffer largest = *std::max_element(
      lone.buffers.begin(), lone.buffers.end() - 1,
      [](const RepriseBuffer &left, const RepriseBuffer &right) {
        return left.bytes < right.bytes;
      });
  largest.bytes = partOf(largest.bytes / size, ranks, divisor) * size;
  const auto terms = size_t(countRuns(groupsOf(lone.row)));
  for (size_t i = 0; i < terms; ++i)
    lone.buffers[i] = largest;
  lone.buffers[terms] = workspace;
  lone.launch.numBuffers = int32_t(terms) + 1;
}

template <int part, int whole>
static void shrinkBlocks(LoneLaunch &lone, int64_t ranks, int64_t divisor) {
  RepriseCollective &row = lone.row;
  row.blockElements = partOf(row.blocks * row.blockElements, 1, divisor);
  row.blocks = 1;
  const int64_t bytes = row.blockElements * sizeOf(Number(row.elementType));
  lone.buffers[part].bytes = bytes;
  lone.buffers[whole].bytes = ranks * bytes;
}

static void shrinkShares(LoneLaunch &lone, int64_t ranks, int64_t divisor) {
  const int64_t size = sizeOf(Number(lone.row.elementType));
  const int64_t count = lone.buffers[2].bytes / size;
  for (int i : {1, 2})
    lone.buffers[size_t(i)].bytes = partOf(count, ranks, divisor) * size;
}

/// A row for each expert is left, and so for each rank.
static void shrinkRows(LoneLaunch &lone, int64_t /*ranks*/, int64_t divisor) {
  const int64_t bytes =
      lone.row.blockElements * sizeOf(Number(lone.row.elementType));
  for (int i : {0, 2}) {
    RepriseBuffer &rows = lone.buffers[size_t(i)];
    rows.bytes = partOf(rows.bytes / bytes, lone.row.blocks, divisor) * bytes;
  }
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

static constexpr Operation kOperations[] = {
    {REPRISE_COLLECTIVE_ALL_REDUCE, 0, checkTerms, runSum<allReduce>,
     "all_reduce", countTermsAndSums, true, shrinkSum},
    {REPRISE_COLLECTIVE_ALL_GATHER, 2, checkAllGather, runAllGather,
     "all_gather", countWhole<1>, false, shrinkBlocks<0, 1>},
    {REPRISE_COLLECTIVE_REDUCE_SCATTER, 3, checkReduceScatter, runReduceScatter,
     "reduce_scatter", countWhole<0>, false, shrinkBlocks<1, 0>},
    {REPRISE_COLLECTIVE_REDUCE_SHARES, 0, checkTerms, runSum<reduceShares>,
     "reduce_shares", countTerms, false, shrinkSum},
    {REPRISE_COLLECTIVE_GATHER_SHARES, 3, checkShare, runGatherShares,
     "gather_shares", countWhole<2>, false, shrinkShares},
    {REPRISE_COLLECTIVE_GATHER_OFFSETS, 3, checkGatherOffsets, runGatherOffsets,
     "gather_offsets", countWhole<1>, false, nullptr, 0, false},
    {REPRISE_COLLECTIVE_SEND_ROWS, 0, checkRows<2, 1>, runRows<true>,
     "send_rows", countRows<2>, false, shrinkRows, 1, true},
    {REPRISE_COLLECTIVE_RETURN_ROWS, 0, checkRows<0, 2>, runRows<false>,
     "return_rows", countRows<0>, false, shrinkRows, 1, true},
    {REPRISE_COLLECTIVE_SEND, 1, checkTransfer, runTransfer<&RankMemory::send>},
    {REPRISE_COLLECTIVE_RECEIVE, 1, checkTransfer,
     runTransfer<&RankMemory::receive>},
};

static const Operation *findOperation(int32_t operation) {
  for (const Operation &each : kOperations)
    if (each.operation == operation)
      return &each;
  return nullptr;
}

/// Only sums of whole buffers are of some of the ranks, each of which runs
/// them.
static bool checkMembers(const Call &call, Error &error) {
  const RepriseCollective &row = call.row();
  if (row.numMembers == 0)
    return true;
  const int64_t size = call.model.axes[row.axis].size;
  const int64_t own =
      coordinateOf(call.model, call.rank, row.axis) - row.firstMember;
  const bool isKnown =
      row.operation == REPRISE_COLLECTIVE_ALL_REDUCE && row.numMembers > 0 &&
      row.memberStride > 0 && row.firstMember >= 0 &&
      row.firstMember + (row.numMembers - 1) * int64_t(row.memberStride) < size;
  if (isKnown && own >= 0 && own % row.memberStride == 0 &&
      own / row.memberStride < row.numMembers)
    return true;
  return error.set(
      "damaged model: rank %d cannot take part in %s, operation %d "
      "of %d ranks from %d on in steps of %d along an axis of "
      "%" PRId64,
      call.rank, call.launch.name, row.operation, row.numMembers,
      row.firstMember, row.memberStride, size);
}

bool reprise::runtime::checkCollective(const RepriseModel &model,
                                       const RepriseLaunch &launch, int rank,
                                       Error &error) {
  const Call call = {model, launch, rank};
  const RepriseCollective &row = call.row();
  const Operation *operation = findOperation(row.operation);
  if (!operation || row.axis < 0 || row.axis >= model.numAxes ||
      (row.elementType != REPRISE_F32 && row.elementType != REPRISE_BF16) ||
      launch.numBuffers == 0 ||
      (operation->numBuffers && launch.numBuffers != operation->numBuffers))
    return error.set("damaged model: %s has operation %d along axis %d of %d "
                     "on %d buffers of type %d",
                     launch.name, row.operation, row.axis, model.numAxes,
                     launch.numBuffers, row.elementType);
  return checkMembers(call, error) && operation->check(call, error);
}

bool reprise::runtime::runCollective(const RepriseModel &model,
                                     const RepriseLaunch &launch,
                                     void *const *addresses, RankMemory &memory,
                                     Error &error) {
  const Call call = {model, launch, memory.rank(), addresses};
  return findOperation(call.row().operation)->run(call, memory, error);
}

bool reprise::runtime::findExchange(const RepriseModel &model,
                                    const RepriseLaunch &launch, int rank,
                                    Exchange &exchange) {
  const Call call = {model, launch, rank};
  const Operation &operation = *findOperation(call.row().operation);
  if (!operation.name)
    return false;
  const Group group = call.group();
  const int64_t bytes = operation.countBytes(call);
  const int64_t rounds = operation.hasWholeSums ? 2 : 1;
  exchange = {operation.name, group, rounds * (group.size - 1),
              rounds * (bytes - (bytes + group.size - 1) / group.size)};
  return true;
}

bool LoneLaunch::take(const RepriseModel &model, const RepriseLaunch &of) {
  launch = of;
  launch.kind = REPRISE_LAUNCH_COLLECTIVE;
  launch.callee = launch.firstBuffer = 0;
  row = model.collectives[of.callee];
  // All rows that there is room for, as an even round has.
  row.round = row.keepsOthers = 0;
  row.roundRows = 0;
  buffers.clear();
  return buffers.append(model.buffers + of.firstBuffer, size_t(of.numBuffers));
}

bool LoneLaunch::shrink(int64_t ranks, int64_t divisor) {
  const Operation &operation = *findOperation(row.operation);
  if (operation.shrink)
    operation.shrink(*this, ranks, divisor);
  return operation.shrink;
}

RepriseModel LoneLaunch::modelOf(const RepriseModel &model) const {
  RepriseModel lone = model;
  lone.collectives = &row;
  lone.numCollectives = 1;
  lone.buffers = buffers.begin();
  return lone;
}

bool LoneLaunch::fillOffsets(int64_t ranks, const Arena &arena,
                             Error &error) const {
  const Operation &operation = *findOperation(row.operation);
  if (operation.offsets < 0)
    return true;
  const int64_t experts = row.blocks;
  int64_t rows = experts;
  // As many for the experts of each rank, so that all have room there.
  if (operation.areOfAll)
    rows = std::min(buffers[0].bytes, buffers[2].bytes) /
           (row.blockElements * sizeOf(Number(row.elementType))) / ranks *
           ranks;
  const RepriseBuffer &buffer = buffers[size_t(operation.offsets)];
  int32_t *offset = arena.at<int32_t>(buffer);
  for (int64_t rank = 0; rank < (operation.areOfAll ? ranks : 1); ++rank)
    for (int64_t expert = 0; expert <= experts; ++expert)
      *offset++ = int32_t(expert * rows / experts);
  return arena.upload(buffer, error);
}
