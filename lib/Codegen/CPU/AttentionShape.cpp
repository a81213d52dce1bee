//===- AttentionShape.cpp - What is known of an attention -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "RTKernels.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

AttentionShape::AttentionShape(ShapedType query, int64_t outWidth,
                               int64_t heads, int64_t keyHeads, double scale,
                               double rate, bool hasBF16x2)
    : hasBF16x2(hasBF16x2), batch(query.getDimSize(0)),
      length(query.getDimSize(1)),
      queryHeads(heads, query.getDimSize(2) / heads, hasBF16x2),
      keyHeads(keyHeads, queryHeads.width, hasBF16x2),
      valueHeads(keyHeads, outWidth / heads, hasBF16x2),
      outHeads(heads, outWidth / heads, hasBF16x2),
      block(std::min(
          blockOf(std::max(queryHeads.width, outHeads.width)),
          int64_t(llvm::alignTo(length, hasBF16x2 ? kTerms : kLanes)))),
      element(query.getElementType()), scale(float(scale)), dropout(rate) {}

LogicalResult attention::verifyHeadWidth(Operation *op, Value query, Value out,
                                         int64_t heads) {
  int64_t width = 0;
  for (Value value : {query, out})
    width = std::max(width,
                     cast<ShapedType>(value.getType()).getDimSize(2) / heads);
  if (width <= kMaxHeadWidth)
    return success();
  return op->emitOpError("needs a head width of at most ")
         << kMaxHeadWidth << ", for a task to do with " << kStackBytes
         << " bytes of stack, but got " << width;
}

bool codegen::mayHaveBF16x2(Operation *op) {
  auto check = [](auto attention) {
    auto query = cast<ShapedType>(attention.getQuery().getType());
    auto out = cast<ShapedType>(attention.getOut().getType());
    int64_t width =
        std::max(query.getDimSize(2), out.getDimSize(2)) / attention.getHeads();
    // Scores are scaled when their maximum is known, which is to stay that.
    return query.getElementType().isBF16() && blockOf(width) % kTerms == 0 &&
           attention.getScale().convertToDouble() > 0;
  };
  if (auto forward = dyn_cast<rt::AttentionOp>(op))
    return check(forward);
  auto backward = dyn_cast<rt::AttentionBackwardOp>(op);
  return backward && check(backward);
}
