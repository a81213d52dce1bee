//===- Kernels.cpp - Kernels of rt, run in the simulator --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "reprise/Codegen/CUDA/Passes.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Kernels/Passes.h"
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace reprise;
using namespace reprise::simulator;

namespace {
/// Text on the way to PTX.
struct Compilation {
  MLIRContext context;
  OwningOpRef<ModuleOp> module;

  explicit Compilation(const std::string &text) {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, func::FuncDialect,
                    linalg::LinalgDialect, math::MathDialect, nn::NNDialect,
                    rt::RTDialect, tensor::TensorDialect>();
    cuda::registerCUDADialects(registry);
    context.appendDialectRegistry(registry);
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      llvm::report_fatal_error("the test's text does not parse");
    PassManager manager(&context);
    manager.addNestedPass<func::FuncOp>(kernels::createConvertNNToLinalg());
    cuda::buildCUDALoweringPipeline(manager, {});
    if (failed(manager.run(*module)))
      llvm::report_fatal_error("the test's kernels have no code");
  }
};
} // namespace

Kernels::Kernels(const std::string &text, const std::string &chip) {
  Compilation compilation(text);
  facts = cuda::getKernelFacts(*compilation.module);
  FailureOr<std::string> code =
      cuda::translateDeviceToLLVMIR(*compilation.module, chip);
  if (failed(code))
    llvm::report_fatal_error("the test's kernels do not become LLVM IR");
  std::string error = load(*code);
  if (!error.empty())
    llvm::report_fatal_error(llvm::StringRef(error));
}

std::string Kernels::ptx(const std::string &text, const std::string &chip) {
  Compilation compilation(text);
  FailureOr<std::string> code = cuda::emitPTX(*compilation.module, chip);
  return succeeded(code) ? *code : "";
}

std::string Kernels::run(const std::string &kernel, std::vector<void *> buffers,
                         const std::vector<int64_t> &ids) const {
  for (int64_t id : ids)
    buffers.push_back(reinterpret_cast<void *>(id));
  for (const cuda::KernelFacts &fact : facts)
    if (fact.name == kernel)
      return launch(kernel.c_str(), {fact.grid.begin(), fact.grid.end()},
                    {fact.block.begin(), fact.block.end()}, buffers,
                    fact.sharedBytes);
  return "there is no kernel '" + kernel + "'";
}

uint16_t simulator::toBF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if (std::isnan(value))
    return 0x7FFF;
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}

float simulator::fromBF16(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}
