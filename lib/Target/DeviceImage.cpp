//===- DeviceImage.cpp - Kernels for GPUs in a program ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Target/DeviceImage.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::target;

FailureOr<DeviceImage> target::buildImage(ModuleOp module,
                                          ArrayRef<std::string> chips) {
  DeviceImage image;
  bool hasAssembler = cuda::findAssembler().has_value();
  for (const std::string &name : chips) {
    FailureOr<const cuda::Chip *> chip = cuda::findChip(module.getLoc(), name);
    if (failed(chip))
      return failure();
    if (!image.ptx.empty() && !hasAssembler)
      continue;
    FailureOr<std::string> ptx = cuda::emitPTX(module, name);
    if (failed(ptx))
      return failure();
    if (hasAssembler) {
      FailureOr<cuda::Assembly> assembly =
          cuda::assemble(module.getLoc(), *ptx, name);
      if (failed(assembly))
        return failure();
      image.cubins.push_back({(*chip)->major, (*chip)->minor,
                              (*chip)->archSpecific,
                              std::move(assembly->cubin)});
    }
    if (image.ptx.empty()) {
      image.ptx = std::move(*ptx);
      image.major = (*chip)->major;
      image.minor = (*chip)->minor;
    }
  }
  return image;
}
