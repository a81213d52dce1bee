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
#include "GroupSum.h"
#include "mlir/IR/TypeUtilities.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Codegen/Common/Numbers.h"
#include "reprise/Dialect/RT/ElementFormat.h"
#include "reprise/Dialect/RT/GroupSums.h"
#include "reprise/Support/Runs.h"

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

int64_t RankSum::getNumTerms() const { return ranks * getNumRuns(groups); }

std::string cuda::getRankSumName(const RankSum &sum) {
  std::string name = getRankSumName(sum.getNumTerms(), sum.element);
  return sum.groups == 1 ? name : name + "_of_" + std::to_string(sum.groups);
}

SmallVector<RankSum> cuda::getRankSums(rt::CollectiveOp op) {
  int64_t ranks = op.getRanks(), groups = rt::getGroups(op);
  if (!op.isSum() || ranks == 1)
    return {};
  Type element = getElementTypeOrSelf(op.getInputs().front());
  if (rt::getNumTerms(op) == 1)
    return {{ranks, 1, element}};
  return {{ranks, groups, element}, {1, groups, element}};
}

/// The sum of `terms`, of so many groups each, by the tree that splits them at
/// the largest power of two of groups below all.
static Value sumTree(DeviceCode &code, ArrayRef<Value> terms,
                     ArrayRef<int64_t> sizes) {
  if (terms.size() == 1)
    return terms.front();
  size_t half = getFirstBranch(sizes);
  return code.add(
      sumTree(code, terms.take_front(half), sizes.take_front(half)),
      sumTree(code, terms.drop_front(half), sizes.drop_front(half)));
}

/// Of inputs of so many groups each.
static void emitSum(DeviceCode &code, Type element, ArrayRef<int64_t> sizes,
                    DeviceKernel &kernel) {
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
    sums.push_back(sumTree(code, terms, sizes));
  }
  for (auto [place, sum] : llvm::zip_equal(places, sums))
    code.when(code.less(place, count), [&, place = place, sum = sum] {
      Value value = codegen::fromF32(code, sum, element);
      code.store(value, kernel.outputs.front(), place);
    });
}

void cuda::emitRankSum(DeviceCode &code, Type element, DeviceKernel &kernel) {
  emitSum(code, element, SmallVector<int64_t>(kernel.inputs.size(), 1), kernel);
}

void cuda::emitGroupSum(DeviceCode &code, const RankSum &sum,
                        DeviceKernel &kernel) {
  emitSum(code, sum.element, getTermSizes(sum.ranks, sum.groups), kernel);
}
