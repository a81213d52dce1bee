//===- GroupedGemms.h - GEMMs of groups that are kernels --------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_KERNELS_GROUPEDGEMMS_H
#define REPRISE_KERNELS_GROUPEDGEMMS_H

#include "ScheduleBuilder.h"

namespace reprise::kernels {

/// A launch in place of `gemm`, a GEMM of groups, of a kernel that is it; it
/// comes from `origin`. Its result.
mlir::Value formGroupedGemm(ScheduleBuilder &schedule, rt::GemmOp gemm,
                            mlir::Operation *origin);

} // namespace reprise::kernels

#endif // REPRISE_KERNELS_GROUPEDGEMMS_H
