//===- RankReport.h - What a rank has needed --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_RANKREPORT_H
#define REPRISE_RUNTIME_SHOW_RANKREPORT_H

#include "runtime/base/List.h"
#include "runtime/transport/Transport.h"

namespace reprise::runtime {

/// Time and memory of one rank up to now.
struct RankReport {
  double stepSeconds = 0;
  double waitSeconds = 0;  ///< Of these, in exchanges.
  double stageSeconds = 0; ///< Of these, for parcels of other stages.
  double aloneSeconds = 0; ///< For what rank 0 does alone.
  double processBytes = 0; ///< The most that its process had.
  double sentBytes = 0;    ///< By a GPU; then by its host, too.
  double plannedBytes = 0, highWaterBytes = 0; ///< Of its arena.
  double savedBytes = 0;                       ///< Of tensors, in checkpoints.
};

/// The least, the median (of an even number the lower one) and the most of a
/// number of all ranks, and whose they are.
struct Spread {
  int ranks[3];
  double values[3];
};

/// \param order  room for the numbers of all ranks.
Spread spreadOf(const List<RankReport> &reports, double RankReport::*number,
                List<int> &order);

/// Adds what the ranks' own process and engine know, and brings all reports to
/// rank 0; those of other ranks stay empty.
bool gather(Transport &ranks, RankReport own, List<RankReport> &all,
            Error &error);

/// The most memory that this process has had, everything included; 0 if the
/// system does not say.
int64_t peakResidentBytes();

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_RANKREPORT_H
