//===- CollectiveLaunch.h - What ranks do together in a launch --*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_DEVICE_COLLECTIVELAUNCH_H
#define REPRISE_RUNTIME_DEVICE_COLLECTIVELAUNCH_H

#include "Arena.h"
#include "runtime/base/List.h"
#include "runtime/transport/Collectives.h"

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Checks a launch of REPRISE_LAUNCH_COLLECTIVE, whose buffers lie in the
/// arena: its row, whether `rank` takes part, and what the buffers have room
/// for.
bool checkCollective(const RepriseModel &model, const RepriseLaunch &launch,
                     int rank, Error &error);

/// Runs it with its buffers at `addresses` of `memory`; `ranks` has the lanes
/// of the host's.
bool runCollective(const RepriseModel &model, const RepriseLaunch &launch,
                   void *const *addresses, RankMemory &memory, Error &error);

/// What is exchanged in a launch.
struct Exchange {
  const char *name; ///< As tables of costs have it: "all_reduce".
  Group group;
  int64_t messages;  ///< That a rank sends one after another.
  int64_t sentBytes; ///< By a rank, where rows of experts are dealt evenly.
};

/// What `launch` exchanges; false if it sends something to another stage, or
/// receives it.
bool findExchange(const RepriseModel &model, const RepriseLaunch &launch,
                  int rank, Exchange &exchange);

/// A launch by itself, on buffers that nobody else needs any more.
struct LoneLaunch {
  RepriseLaunch launch;
  RepriseCollective row;
  List<RepriseBuffer> buffers;

  /// That of a model; false if there is no memory left for it.
  bool take(const RepriseModel &model, const RepriseLaunch &of);
  /// Leaves a part in `divisor` of what it exchanges, but an element or a row
  /// for each of `ranks`. False if its bytes are always the same.
  bool shrink(int64_t ranks, int64_t divisor);
  /// `model` with this launch in place of its own.
  RepriseModel modelOf(const RepriseModel &model) const;
  /// Where it reads offsets of rows of experts: writes some that deal rows
  /// evenly, for the tokens of `ranks`.
  bool fillOffsets(int64_t ranks, const Arena &arena, Error &error) const;
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_DEVICE_COLLECTIVELAUNCH_H
