//===- Votes.cpp - What the threads of a warp agree on ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Votes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

Votes cuda::vote(DeviceCode &code, Value flag, Value lane) {
  Type i32 = code.getI32Type();
  Value set = NVVM::VoteSyncOp::create(code, i32, code.scalar(i32, -1), flag,
                                       NVVM::VoteSyncKind::ballot);
  Value one = code.scalar(i32, 1);
  Value bit = arith::ShLIOp::create(code, one, code.cast(lane, i32));
  Value lower = arith::AndIOp::create(code, set, code.sub(bit, one));
  auto count = [&](Value bits) -> Value {
    return LLVM::CtPopOp::create(code, i32, bits);
  };
  return {count(set), count(lower)};
}

void cuda::syncWarp(DeviceCode &code) {
  NVVM::SyncWarpOp::create(code, code.scalar(code.getI32Type(), -1));
}
