//===- KernelTable.h - Kernels, each structure once -------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_KERNELTABLE_H
#define REPRISE_KERNELS_KERNELTABLE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace reprise::kernels {

/// Ops of a schedule that become one launch.
struct Group {
  explicit Group(llvm::ArrayRef<mlir::Operation *> ops) : ops(ops) {}

  /// In their order; what is inside refers to what is before it, or to inputs.
  llvm::SmallVector<mlir::Operation *> ops;
  /// What is read from outside, and what is read outside.
  llvm::SetVector<mlir::Value> inputs, outputs;
  /// Inputs whose buffer becomes that of an output.
  llvm::MapVector<mlir::Value, mlir::Value> inPlace;
};

/// The kernels of a module. Groups that differ in locations, discardable
/// attributes and the numbers of their random streams alone share one. What
/// depends on the rank's place is an axis of the module's mesh.
class KernelTable {
public:
  explicit KernelTable(mlir::ModuleOp module);

  /// The kernel of `group`; takes time linear in the size of the group.
  mlir::func::FuncOp getKernel(const Group &group);

  /// The kernel named `name`, or like it, of one result that is not made by nn
  /// ops.
  mlir::func::FuncOp
  getKernel(llvm::StringRef name, mlir::FunctionType type,
            llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::ValueRange)>
                buildResult);

  /// A launch's ids: the random streams of `ops`, and behind that of each the
  /// axis along which it asks for the rank's number, -1 for the first.
  llvm::SmallVector<int64_t>
  getIds(llvm::ArrayRef<mlir::Operation *> ops) const;

private:
  mlir::func::FuncOp create(std::string name, mlir::FunctionType type,
                            mlir::Location loc);

  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  llvm::DenseMap<mlir::Attribute, mlir::func::FuncOp> kernels;
  llvm::StringMap<unsigned> names;
};

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_KERNELTABLE_H
