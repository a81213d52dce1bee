//===- NNToLinalgLatent.cpp - Multi-head latent attention -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What copies columns has results of several widths, which no one nest of loops
// has: each is an op of `rt`.
//
//===----------------------------------------------------------------------===//

#include "NNToLinalg.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;
using namespace reprise::nn;

void kernels::attachLatentBodies(MLIRContext &context) {
  attachRenamed<SplitColumnsOp, rt::SplitColumnsOp>(context);
  attachRenamed<JoinColumnsOp, rt::JoinColumnsOp>(context);
  attachRenamed<LatentHeadsOp, rt::LatentHeadsOp>(context);
  attachRenamed<LatentHeadsBackwardOp, rt::LatentHeadsBackwardOp>(context);
}
