//===- RankSum.cpp - Sums of what ranks have --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one kernel that no launch of the schedule names: the runtime launches it
// where ranks add up what they have received. Terms begin anywhere and are of
// any length, so a thread has single elements, a block's width apart: those of
// all terms are under way at once.
//
//===----------------------------------------------------------------------===//

#include "DeviceKernels.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Codegen/Common/Numbers.h"
#include "reprise/Dialect/RT/ElementFormat.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::cuda;

static constexpr int64_t kThreads = 256;
static constexpr int64_t kPerThread = kRankSumElements / kThreads;

std::string cuda::getRankSumName(int64_t numTerms, Type element) {
  return ("reprise_sum_" + Twine(numTerms) + "x" +
          rt::getElementFormat(element)->name)
      .str();
}

/// The sum of `terms` by the tree that splits them at the largest power of two
/// below their number.
static Value sumTree(DeviceCode &code, ArrayRef<Value> terms) {
  if (terms.size() == 1)
    return terms.front();
  size_t half = llvm::bit_ceil(terms.size()) / 2;
  return code.add(sumTree(code, terms.take_front(half)),
                  sumTree(code, terms.drop_front(half)));
}

void cuda::emitRankSum(DeviceCode &code, Type element, DeviceKernel &kernel) {
  kernel.setLaunch(code, 1, kThreads);
  Value count = code.load(code.getI64Type(), kernel.ids, code.i64(0));
  Value last = code.sub(count, code.i64(1));
  Value first =
      code.add(code.mul(code.block(), kRankSumElements), code.thread());
  SmallVector<Value> places, sums;
  for (int64_t k = 0; k < kPerThread; ++k) {
    // Behind the end a thread reads the last element and stores nothing.
    Value place = code.add(first, k * kThreads);
    Value at = code.min(place, last);
    SmallVector<Value> terms;
    for (Value term : kernel.inputs) {
      Value value = code.load(element, term, at);
      terms.push_back(codegen::toF32(code, value));
    }
    places.push_back(place);
    sums.push_back(sumTree(code, terms));
  }
  for (auto [place, sum] : llvm::zip_equal(places, sums))
    code.when(code.less(place, count), [&, place = place, sum = sum] {
      Value value = codegen::fromF32(code, sum, element);
      code.store(value, kernel.outputs.front(), place);
    });
}
