//===- GroupSum.h - Sums of what ranks have of groups -----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_GROUPSUM_H
#define REPRISE_LIB_CODEGEN_CUDA_GROUPSUM_H

#include "DeviceCode.h"
#include "reprise/Codegen/CUDA/RankSums.h"

namespace reprise::cuda {

/// As emitRankSum, by the tree over the groups that the inputs have.
void emitGroupSum(DeviceCode &code, const RankSum &sum, DeviceKernel &kernel);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_GROUPSUM_H
