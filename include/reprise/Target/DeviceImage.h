//===- DeviceImage.h - Kernels for GPUs in a program ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TARGET_DEVICEIMAGE_H
#define REPRISE_TARGET_DEVICEIMAGE_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace reprise::target {

/// The kernels of `@device` as a program carries them.
struct DeviceImage {
  struct Cubin {
    int32_t major, minor; ///< 9, 0
    bool archSpecific;    ///< for this very chip: sm_90a
    std::vector<char> code;
  };
  std::string ptx; ///< for the oldest chip, which later ones take too
  int32_t major = 0, minor = 0;
  std::vector<Cubin> cubins; ///< none without `ptxas`
};

/// Makes the image of a module of the phase `nvvm`. The PTX is for the first of
/// the chips.
mlir::FailureOr<DeviceImage> buildImage(mlir::ModuleOp module,
                                        llvm::ArrayRef<std::string> chips);

} // namespace reprise::target

#endif // REPRISE_TARGET_DEVICEIMAGE_H
