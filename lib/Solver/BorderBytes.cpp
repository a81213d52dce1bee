//===- BorderBytes.cpp - What crosses each border of chunks ---------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Solver/BorderBytes.h"

using namespace reprise::solver;

/// The border that a transfer crosses: what is sent forward, and the gradient
/// of it, behind the chunk; else in front of it.
static int64_t getBorder(const ScheduleEntry &entry) {
  bool isBehind = (entry.kind == ScheduleEntry::Send) != entry.isGradient;
  return isBehind ? entry.chunk : entry.chunk - 1;
}

BorderBytes reprise::solver::getBorderBytes(const ScheduleTable &table) {
  BorderBytes bytes;
  int64_t chunks = table.shape.stages * table.shape.virtualStages;
  bytes.activations.resize(chunks - 1);
  bytes.gradients.resize(chunks - 1);
  for (const StageTable &stage : table.stages)
    for (const ScheduleEntry &entry : stage.entries)
      if (entry.kind == ScheduleEntry::Send)
        (entry.isGradient ? bytes.gradients
                          : bytes.activations)[getBorder(entry)] = entry.bytes;
  return bytes;
}

void reprise::solver::setBorderBytes(ScheduleTable &table,
                                     const BorderBytes &bytes) {
  for (StageTable &stage : table.stages)
    for (ScheduleEntry &entry : stage.entries)
      if (entry.kind == ScheduleEntry::Send ||
          entry.kind == ScheduleEntry::Receive)
        entry.bytes = (entry.isGradient ? bytes.gradients
                                        : bytes.activations)[getBorder(entry)];
}
