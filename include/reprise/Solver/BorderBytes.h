//===- BorderBytes.h - What crosses each border of chunks -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_BORDERBYTES_H
#define REPRISE_SOLVER_BORDERBYTES_H

#include "reprise/Solver/StageSchedule.h"

namespace reprise::solver {

/// Of each border the bytes that cross it forward, and those of the gradients
/// that cross it back.
struct BorderBytes {
  std::vector<int64_t> activations, gradients;
};

/// Those that the sends of a table say.
BorderBytes getBorderBytes(const ScheduleTable &table);

/// Says so in the transfers of a table, which `makeTable` makes as if all
/// borders were alike.
void setBorderBytes(ScheduleTable &table, const BorderBytes &bytes);

} // namespace reprise::solver

#endif // REPRISE_SOLVER_BORDERBYTES_H
