//===- DescribeKernels.cpp - What kernels take, as a table ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

/// How often the functions of the schedule launch each kernel.
static llvm::StringMap<int64_t> countLaunches(ModuleOp module) {
  llvm::StringMap<int64_t> launches;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](rt::LaunchOp op) { ++launches[op.getKernel()]; });
  return launches;
}

FailureOr<std::string> cuda::describeKernels(ModuleOp module, StringRef chip) {
  FailureOr<std::string> ptx = emitPTX(module, chip);
  if (failed(ptx))
    return failure();
  llvm::StringMap<KernelResources> resources;
  bool isAssembled = findAssembler().has_value();
  if (isAssembled) {
    FailureOr<Assembly> assembly = assemble(module.getLoc(), *ptx, chip);
    if (failed(assembly))
      return failure();
    for (const KernelResources &kernel : assembly->kernels)
      resources[kernel.name] = kernel;
  }

  llvm::StringMap<int64_t> launches = countLaunches(module);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "kernels for " << chip
     << (isAssembled ? "" : ", without registers: there is no ptxas") << "\n"
     << "launches     blocks threads  shared bytes    bytes moved";
  if (isAssembled)
    os << " registers spilled";
  os << "  kernel\n";
  for (const KernelFacts &kernel : getKernelFacts(module)) {
    auto product = [](const std::array<int64_t, 3> &sizes) {
      return sizes[0] * sizes[1] * sizes[2];
    };
    const KernelResources &taken = resources[kernel.name];
    os << llvm::format(
        "%8lld %10lld %7lld %13lld %14lld", (long long)launches[kernel.name],
        (long long)product(kernel.grid), (long long)product(kernel.block),
        (long long)(kernel.sharedBytes + taken.sharedBytes),
        (long long)kernel.bytes);
    if (isAssembled)
      os << llvm::format("%10lld %7lld", (long long)taken.registers,
                         (long long)(taken.spillStores + taken.spillLoads));
    os << "  " << kernel.name << "\n";
  }
  return text;
}
