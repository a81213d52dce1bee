//===- BorderLanes.h - The lanes that borders need --------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_STAGES_BORDERLANES_H
#define REPRISE_LIB_STAGES_BORDERLANES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Dialect/Pipe/PipeOps.h"
#include "llvm/ADT/MapVector.h"

namespace reprise::stages {

/// What an argument or result is by its role, "" if it has none of these.
llvm::StringRef getInput(mlir::func::FuncOp function, unsigned index);
llvm::StringRef getOutput(mlir::func::FuncOp function, unsigned index);

/// The types of those arguments, or results, of `function` that are `role`.
llvm::SmallVector<mlir::Type> getInputTypes(mlir::func::FuncOp function,
                                            llvm::StringRef role);
llvm::SmallVector<mlir::Type> getOutputTypes(mlir::func::FuncOp function,
                                             llvm::StringRef role);

/// A way from one stage to another, and how many parcels may be on it.
struct Lane {
  int64_t number, places;
};

/// Values of one type have a lane, on which those of a border follow each
/// other, and their gradients another. The first type that crosses a border is
/// that of hidden states.
class BorderLanes {
public:
  /// Notes what a chunk passes on or back, or reads of other chunks.
  void add(mlir::func::FuncOp chunk);

  int64_t countTypes() const { return mostAtOnce.size(); }

  /// The lane of `type`, which `sender` has. None if no value of that type
  /// crosses a border.
  std::optional<Lane> find(mlir::Type type, pipe::StageOp sender,
                           bool isGradient) const;

private:
  /// How many values of a type cross a border, at most.
  llvm::MapVector<mlir::Type, int64_t> mostAtOnce;
};

} // namespace reprise::stages

#endif // REPRISE_LIB_STAGES_BORDERLANES_H
