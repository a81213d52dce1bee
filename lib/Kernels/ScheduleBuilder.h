//===- ScheduleBuilder.h - What builds a schedule, op by op -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_SCHEDULEBUILDER_H
#define REPRISE_KERNELS_SCHEDULEBUILDER_H

#include "KernelTable.h"
#include "reprise/Dialect/NN/Phases.h"
#include "reprise/Dialect/RT/RTOps.h"

namespace reprise::kernels {

/// Builds launches and other ops of `rt` in front of an op, with its name and
/// its ids.
class ScheduleBuilder {
public:
  ScheduleBuilder(mlir::func::FuncOp function, KernelTable &kernels)
      : function(function), kernels(kernels), builder(function.getContext()) {}

  /// What is built from here on stands in front of `op`, and is of `phase`.
  void begin(mlir::Operation *op, nn::StepPhase phase) {
    builder.setInsertionPoint(op);
    this->phase = phase;
  }

  mlir::OpBuilder &getBuilder() { return builder; }
  KernelTable &getKernels() { return kernels; }

  /// The ranks along an axis of the module's mesh.
  int64_t getAxisSize(mlir::StringAttr axis) const;

  /// A launch of `kernel` that is a part of what `origin` becomes.
  rt::LaunchOp formLaunch(mlir::func::FuncOp kernel, mlir::ValueRange inputs,
                          int64_t flops, mlir::Operation *origin);

  /// Gives `formed` the name of `origin`, the replay that this is of, and the
  /// ids of `ops`, which it is made of.
  void annotate(mlir::Operation *formed, mlir::Operation *origin,
                llvm::ArrayRef<mlir::Operation *> ops);

  /// "layer3.mlp.u", "layer3.mlp.u@replay", "layer3.mlp.u.backward_weight",
  /// "optimizer": what a launch is called whose first op is `op`.
  std::string getLaunchName(mlir::Operation *op) const;

private:
  mlir::func::FuncOp function;
  KernelTable &kernels;
  mlir::OpBuilder builder;
  nn::StepPhase phase = nn::StepPhase::Forward;
};

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_SCHEDULEBUILDER_H
