//===- Advice.h - What to change where no plan fits -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_ADVICE_H
#define REPRISE_TOOLS_REPRISEC_ADVICE_H

#include "Options.h"
#include "python-free-frontend/Frontend.h"
#include "reprise/Pipelines/Pipelines.h"
#include "reprise/Planning/Budget.h"

namespace reprise::driver {
/// Where no plan of `description` fits `budget`, prints as notes what its step
/// needs with another key, each that makes it smaller and all together; and
/// where none of that is enough, into how many stages of a pipeline it must be
/// cut. With stages the step is that of the one that needs most, and with
/// `hasPrograms` it is compiled. Each try costs what the curve of a budget
/// costs. Prints nothing where a plan fits.
void adviseOn(mlir::MLIRContext &context,
              const frontend::Description &description,
              const planning::Budget &budget, const Options &options,
              const RecomputeOptions &recompute, const TargetOptions &target,
              bool hasPrograms);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_ADVICE_H
