//===- LinkClock.h - When ranks meet beside launches ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REPORT_LINKCLOCK_H
#define REPRISE_LIB_REPORT_LINKCLOCK_H

#include "reprise/Report/MemoryProfile.h"

namespace reprise::report {

/// What a position adds to the time of launches, and what that is spent on:
/// where something is waited for, the rest of that.
struct PositionTime {
  double seconds;
  Workload load;
};

/// Of each position of a schedule in one micro-batch, with `isLast` in the last
/// one of a step and in the update behind it; without, of what runs once, 0.
std::vector<PositionTime> timeMicroBatch(const MemoryProfile &profile,
                                         const CostTable &costs, bool isLast);

} // namespace reprise::report

#endif // REPRISE_LIB_REPORT_LINKCLOCK_H
