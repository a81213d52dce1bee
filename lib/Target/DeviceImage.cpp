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

FailureOr<std::vector<std::string>>
target::checkChips(Location location, ArrayRef<std::string> names) {
  std::vector<const cuda::Chip *> chips;
  for (const std::string &name : names) {
    FailureOr<const cuda::Chip *> chip = cuda::findChip(location, name);
    if (failed(chip))
      return failure();
    if (llvm::is_contained(chips, *chip))
      return emitError(location, "needs each chip once, but got ")
             << name << " twice";
    chips.push_back(*chip);
  }
  if (chips.empty())
    return emitError(location, "needs a chip to compile for, such as sm_80");
  // Those that later ones can take the code of come first.
  llvm::sort(chips, [](const cuda::Chip *a, const cuda::Chip *b) {
    return std::tuple(a->archSpecific, a->major, a->minor) <
           std::tuple(b->archSpecific, b->major, b->minor);
  });
  std::vector<std::string> sorted;
  for (const cuda::Chip *chip : chips)
    sorted.push_back(chip->name.str());
  return sorted;
}

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
