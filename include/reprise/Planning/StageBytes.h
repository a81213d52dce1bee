//===- StageBytes.h - What the stages of a pipeline need --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PLANNING_STAGEBYTES_H
#define REPRISE_PLANNING_STAGEBYTES_H

#include "mlir/IR/BuiltinOps.h"
#include "reprise/Interfaces/CostTable.h"
#include "reprise/Planning/Phases.h"
#include <vector>

namespace reprise::planning {

/// Bytes of a stage, as a budget of the whole memory counts them.
struct StageBytes {
  int64_t states = 0;      ///< what is there all the time
  int64_t activations = 0; ///< of all micro-batches in flight, one running
};

/// What each stage of the pipeline that `remat.chunks` of `@step` makes needs
/// under the decisions on its ops. `module` is of the phase joint. Fails with a
/// diagnostic if the step is no chain of layers, or the schedule of the
/// pipeline cannot run.
mlir::FailureOr<std::vector<StageBytes>> measureStages(const Phases &phases,
                                                       mlir::ModuleOp module,
                                                       const CostTable &costs,
                                                       bool isFree);

} // namespace reprise::planning

#endif // REPRISE_PLANNING_STAGEBYTES_H
