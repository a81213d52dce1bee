//===- KernelBody.h - How ops become loops ----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_KERNELBODY_H
#define REPRISE_KERNELS_KERNELBODY_H

#include "Gemms.h"
#include "LoopBuilder.h"
#include "mlir/IR/OpDefinition.h"

namespace reprise::kernels {
class ScheduleBuilder;
} // namespace reprise::kernels

#include "reprise/Kernels/KernelBody.h.inc"

namespace reprise::kernels {

/// Attaches the bodies of all ops of nn when a context of `registry` loads the
/// dialect. Passes that ask for bodies do so as dependent dialects.
void registerKernelBodies(mlir::DialectRegistry &registry);

/// The parts of that, by file.
void attachElementBodies(mlir::MLIRContext &context);
void attachSumBodies(mlir::MLIRContext &context);
void attachRowBodies(mlir::MLIRContext &context);
void attachHeadBodies(mlir::MLIRContext &context);
void attachShardBodies(mlir::MLIRContext &context);
void attachExpertBodies(mlir::MLIRContext &context);
void attachLatentBodies(mlir::MLIRContext &context);
void attachGemmBodies(mlir::MLIRContext &context);
void attachNormBodies(mlir::MLIRContext &context);
void attachExchangeBodies(mlir::MLIRContext &context);

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_KERNELBODY_H
