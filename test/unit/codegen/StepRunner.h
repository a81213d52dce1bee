//===- StepRunner.h - A step, interpreted and compiled ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function of nn ops on the way that it takes in a program: kernels are
// formed, written out as loops and compiled; here their launches are run one by
// one, in place where a kernel says so. The interpreter says what is right.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TEST_UNIT_CODEGEN_STEPRUNNER_H
#define REPRISE_TEST_UNIT_CODEGEN_STEPRUNNER_H

#include "KernelRunner.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Interpreter/Interpreter.h"

namespace reprise::codegen {

class StepRunner {
public:
  /// Reads the function @step of `text`, or ends the test program.
  explicit StepRunner(const std::string &text);

  mlir::func::FuncOp getStep();

  /// What the interpreter returns for `arguments`.
  std::vector<interpreter::Tensor>
  interpret(const std::vector<Floats> &arguments);

  /// Turns the step into launches, and compiles the kernels.
  void compile();

  /// Runs all launches and GEMMs, tasks in chunks as KernelRunner::run takes
  /// them, and returns what the step returns.
  std::vector<Floats> launch(std::vector<Floats> buffers, int64_t chunk);

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<KernelRunner> kernels;
};

} // namespace reprise::codegen

#endif // REPRISE_TEST_UNIT_CODEGEN_STEPRUNNER_H
