//===- Segments.h - Arrays of different lengths in one kernel ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a task works on is looked up in tables of constants beside the kernel,
// so that the code does not grow with the number of arrays.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CPU_SEGMENTS_H
#define REPRISE_LIB_CODEGEN_CPU_SEGMENTS_H

#include "Kernel.h"

namespace reprise::codegen {

/// A constant array of i64 beside the kernel, and its address.
mlir::Value constantTable(Code &code, Kernel &kernel, llvm::StringRef suffix,
                          llvm::ArrayRef<int64_t> values);

/// Where a task belongs when the tasks of several arrays are counted through.
struct TaskTable {
  /// \param counts  the tasks of each array, at least one.
  TaskTable(Code &code, Kernel &kernel, llvm::ArrayRef<int64_t> counts);

  /// The array of `task`, and the number of the task within it; takes time
  /// logarithmic in the number of arrays.
  std::pair<mlir::Value, mlir::Value> find(Code &code, mlir::Value task) const;

  int64_t numTasks = 0;

private:
  int64_t padded; ///< A power of 2, above the number of arrays.
  mlir::Value ends;
};

/// Fills the body of a kernel that `isSegmented` and sets its number of tasks.
mlir::LogicalResult emitSegments(Code &code, Kernel &kernel);

} // namespace reprise::codegen

#endif // REPRISE_LIB_CODEGEN_CPU_SEGMENTS_H
