//===- StepRunner.cpp - A step, interpreted and compiled --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepRunner.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Kernels/Passes.h"
#include <cmath>

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using interpreter::Tensor;

StepRunner::StepRunner(const std::string &text) {
  context.loadDialect<func::FuncDialect, nn::NNDialect, rt::RTDialect>();
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    llvm::report_fatal_error("the test's step does not parse");
}

func::FuncOp StepRunner::getStep() {
  return module->lookupSymbol<func::FuncOp>(nn::kStepFunction);
}

std::vector<Tensor>
StepRunner::interpret(const std::vector<Floats> &arguments) {
  interpreter::Interpreter machine(getStep());
  for (auto [argument, values] :
       llvm::zip(getStep().getArguments(), arguments)) {
    Tensor tensor(cast<ShapedType>(argument.getType()).getShape());
    llvm::copy(values, tensor.values.begin());
    machine.set(argument, tensor);
  }
  FailureOr<std::vector<Tensor>> results = machine.run();
  if (failed(results))
    llvm::report_fatal_error("the test's step has no meaning");
  return *results;
}

void StepRunner::compile() {
  PassManager manager(&context);
  manager.addPass(kernels::createFormKernels());
  manager.addNestedPass<func::FuncOp>(kernels::createConvertNNToLinalg());
  if (failed(manager.run(*module)))
    llvm::report_fatal_error("the test's step has no kernels");
  OwningOpRef<ModuleOp> others = module->clone();
  others->lookupSymbol(nn::kStepFunction)->erase();
  std::string text;
  llvm::raw_string_ostream stream(text);
  others->print(stream);
  kernels = std::make_unique<KernelRunner>(text);
}

/// A GEMM as its op defines it, in f64.
static void multiply(rt::GemmOp op, const Floats &a, const Floats &b,
                     const float *bias, const float *addend, Floats &c) {
  auto at = [](int64_t row, int64_t col, int64_t stride, bool transpose) {
    return transpose ? col * stride + row : row * stride + col;
  };
  auto stride = [](std::optional<ArrayRef<int64_t>> strides, unsigned d) {
    return strides ? (*strides)[d] : 0;
  };
  ArrayRef<int64_t> batch = op.getBatch().value_or(ArrayRef<int64_t>{1, 1});
  for (int64_t x = 0; x < batch[0]; ++x)
    for (int64_t y = 0; y < batch[1]; ++y)
      for (int64_t i = 0; i < int64_t(op.getM()); ++i)
        for (int64_t j = 0; j < int64_t(op.getN()); ++j) {
          auto first = [&](std::optional<ArrayRef<int64_t>> strides) {
            return x * stride(strides, 0) + y * stride(strides, 1);
          };
          double sum = 0;
          for (int64_t p = 0; p < int64_t(op.getK()); ++p)
            sum += double(a[first(op.getStrideA()) +
                            at(i, p, op.getLda(), op.getTransposeA())]) *
                   b[first(op.getStrideB()) +
                     at(p, j, op.getLdb(), op.getTransposeB())];
          int64_t target = first(op.getStrideC()) + i * op.getLdc() + j;
          c[target] =
              float(op.getAlpha().convertToFloat() * sum +
                    (bias ? bias[j] : 0) + (addend ? addend[target] : 0));
        }
}

std::vector<Floats> StepRunner::launch(std::vector<Floats> buffers,
                                       int64_t chunk) {
  DenseMap<Value, unsigned> where;
  for (BlockArgument argument : getStep().getArguments())
    where[argument] = argument.getArgNumber();
  for (Operation &op : getStep().getBody().front().without_terminator()) {
    for (Value result : op.getResults()) {
      where[result] = buffers.size();
      auto type = cast<ShapedType>(result.getType());
      buffers.emplace_back(type.getNumElements(), NAN);
    }
    auto get = [&](Value value) -> Floats & {
      return buffers[where.lookup(value)];
    };
    if (auto gemm = dyn_cast<rt::GemmOp>(op)) {
      multiply(gemm, get(gemm.getA()), get(gemm.getB()),
               gemm.getBias() ? get(gemm.getBias()).data() : nullptr,
               gemm.getAddend() ? get(gemm.getAddend()).data() : nullptr,
               get(gemm.getResult()));
      continue;
    }
    // What is viewed is there by now, and does not change.
    if (auto view = dyn_cast<rt::ViewOp>(op)) {
      const float *first = get(view.getInput()).data() + view.getFirst();
      std::copy_n(first, get(view.getOut()).size(), get(view.getOut()).data());
    }
    auto call = dyn_cast<rt::LaunchOp>(op);
    if (!call)
      continue;
    auto kernel = module->lookupSymbol<func::FuncOp>(call.getKernel());
    for (auto [index, input] : llvm::enumerate(call.getInputs()))
      if (auto shared =
              kernel.getArgAttrOfType<IntegerAttr>(index, rt::kInPlaceAttr))
        where[call.getResult(shared.getInt())] = where.lookup(input);
    std::vector<void *> addresses;
    for (ValueRange values :
         {ValueRange(call.getInputs()), ValueRange(call.getResults())})
      for (Value value : values)
        addresses.push_back(get(value).data());
    ArrayRef<int64_t> ids = call.getIds().value_or(ArrayRef<int64_t>());
    kernels->run(call.getKernel().str(), addresses, ids.vec(), chunk,
                 chunk == 1);
  }
  std::vector<Floats> results;
  for (Value value : getStep().getBody().front().getTerminator()->getOperands())
    results.push_back(buffers[where.lookup(value)]);
  return results;
}
