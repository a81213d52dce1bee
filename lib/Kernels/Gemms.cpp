//===- Gemms.cpp - GEMMs of nn as rt.gemm -----------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelBody.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Interfaces/EvenRows.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::kernels;

rt::GemmOp kernels::formGemm(OpBuilder &builder, GemmBody op, Value addend,
                             Beside beside) {
  Gemm p = op.describe();
  auto strides = [&](ArrayRef<int64_t> values) {
    return p.batch.empty() ? DenseI64ArrayAttr()
                           : builder.getDenseI64ArrayAttr(values);
  };
  auto number = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  auto flag = [&](bool set) {
    return set ? builder.getUnitAttr() : UnitAttr();
  };
  // Rows of heads that are to be summed yet are not rounded.
  Type type = (p.rows ? p.rows : op->getResult(0)).getType();
  if (std::optional<SharedHeads> shared = op.getSharedHeads();
      shared && shared->areSummed)
    type = cast<RankedTensorType>(type).clone(builder.getF32Type());
  SmallVector<Type, 2> types = {type};
  rt::EpilogueAttr epilogue;
  auto make = [&](rt::Epilogue kind, ArrayRef<int64_t> shape) {
    epilogue = rt::EpilogueAttr::get(builder.getContext(), kind);
    types.push_back(RankedTensorType::get(shape, builder.getF32Type()));
  };
  if (beside == Beside::SumOfRows) {
    bool isA = op.getSummedRows() == p.a;
    make(isA ? rt::Epilogue::SumsOfA : rt::Epilogue::SumsOfB,
         {isA ? p.m : p.n});
  } else if (beside == Beside::Squares) {
    make(rt::Epilogue::SquaresOfC,
         {int64_t(llvm::divideCeil(p.m, REPRISE_GEMM_SQUARES_ROWS)),
          int64_t(llvm::divideCeil(p.n, REPRISE_GEMM_SQUARES_COLS))});
  }
  auto gemm = rt::GemmOp::create(
      builder, op->getLoc(), types, p.a, p.b, p.bias, p.offsets, p.order,
      addend,
      /*output=*/Value(), /*aux=*/Value(), /*workspace=*/Value(), number(p.m),
      number(p.n), number(p.k), number(p.lda), number(p.ldb), number(p.ldc),
      strides(p.batch), strides(p.strideA), strides(p.strideB),
      strides(p.strideC), builder.getF32FloatAttr(p.alpha), flag(p.transposeA),
      flag(p.transposeB),
      /*accumulate=*/UnitAttr(), epilogue, /*packedB=*/UnitAttr(),
      p.gather ? rt::GatherAttr::get(builder.getContext(), *p.gather)
               : rt::GatherAttr(),
      p.gather ? number(p.slots) : IntegerAttr());
  if (Attribute rows = op->getAttr(kEvenNNRowsAttr))
    gemm->setAttr(kEvenRTRowsAttr, rows);
  return gemm;
}
