//===- StepText.h - Steps as text -------------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form of `.step` files, with which any solver can be asked for plans
// without a compiler: docs/solver.md#steps-as-text.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SOLVER_STEPTEXT_H
#define REPRISE_SOLVER_STEPTEXT_H

#include "reprise/Solver/Packing.h"
#include "reprise/Solver/StepGraph.h"
#include <iosfwd>

namespace reprise::solver {

/// Reads a step that passes `check`. A fault has its line and column; what
/// `check` finds has the line of the value or op.
std::optional<TextError> readStep(std::istream &in, StepGraph &graph);

/// Writes the same form. A name that is taken gets `~2`, `~3`, … behind it, and
/// characters that no name can have become `_`. But for that, `readStep` makes
/// `graph` of the text again.
void writeStep(std::ostream &out, const StepGraph &graph);

} // namespace reprise::solver

#endif // REPRISE_SOLVER_STEPTEXT_H
