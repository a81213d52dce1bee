//===- GemmDriver.h - The loops around tiles --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_COMPUTE_GEMMDRIVER_H
#define REPRISE_RUNTIME_COMPUTE_GEMMDRIVER_H

#include "GemmTiles.h"

namespace reprise::runtime {

/// Goes over one entry of a batch as its plan says, with the pool's threads or,
/// if that is null, on this one. Blocks and places in the workspace are values
/// that are made for a task; the job does not change.
class GemmDriver {
public:
  GemmDriver(const GemmJob &job, ThreadPool *pool);

  /// Computes the GEMM and the squares that are wanted of it.
  void run();

private:
  /// Calls `fn(task, slot)` for all tasks, with the pool's threads if so many
  /// FLOPs are worth it.
  template <typename Fn>
  void share(int64_t flops, int64_t tasks, Fn fn) const;
  template <typename Fn>
  void share(const GemmBlock &block, int64_t tasks, Fn fn) const;
  /// Calls `fn(slot, round, task)` for all tasks of all rounds, with the pool's
  /// threads if there is one: see `ThreadPool::parallelRounds`.
  template <typename Fn>
  void shareRounds(int64_t rounds, int64_t tasks, Fn fn) const;

  Range getDepth(int64_t begin) const {
    return {begin, smaller(job.plan.depth, job.shape.k - begin)};
  }
  Range getRowsOfPartition(int64_t index) const;
  /// Where thread `slot` has panels of A of a partition, in a part of the room;
  /// of long ones this goes on into the room for B, which comes after A's.
  float *panelsOfPartition(int slot) const;
  /// Where it has panels of A of a block of rows that all threads share: the
  /// room for A goes on where panels of B would lie that are never there at the
  /// same time.
  float *panelsOfSharedRows(int slot) const;

  /// LoopOrder::ReadA and ReadAByColumns.
  void readA() const;
  void readAByColumns() const;
  float *placeOfA(int slot) const;

  /// LoopOrder::LongPartitions, SmallB and WholeDepth: threads that pack for
  /// themselves what they use of A, shared rows or a partition, and of B. A
  /// task is a panel of B, or a few, and a round a block of the depth; nobody
  /// waits before the end or, of several rounds, before the next partition, so
  /// that its part of C stays in the caches.
  void computeAlone();
  struct AloneTasks;
  void computeAlone(const AloneTasks &tasks);
  GemmBlock getBlockAlone(const AloneTasks &tasks, int slot, int64_t round,
                          int64_t task) const;
  BlockRange getRangeAlone(int64_t round) const;

  /// The others: block by block, with all threads.
  void computeBlocks();
  void computeBlock(const GemmBlock &block, LoopOrder order);
  void computeOwnPanels(const GemmBlock &block);
  void computePartitions(const GemmBlock &block);
  void computeTiles(const GemmBlock &block);

  const GemmJob &job;
  const GemmPlan &plan;
  ThreadPool *pool;
  PlacesOfB places[ThreadPool::kMaxThreads]; ///< Of each thread.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_COMPUTE_GEMMDRIVER_H
