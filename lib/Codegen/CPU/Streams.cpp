//===- Streams.cpp - What goes past the caches ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "reprise/Codegen/Common/LoopNest.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// A kernel that moves so much leaves little of it in most caches.
static constexpr int64_t kBytesPastCaches = 32 << 20;
static constexpr int64_t kLine = 64;

static int64_t bytesOf(Type tensor) {
  auto type = cast<ShapedType>(tensor);
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

static bool overlap(rt::BufferOp a, rt::BufferOp b) {
  auto endOf = [&](rt::BufferOp buffer) {
    return buffer.getOffset() + bytesOf(buffer.getType());
  };
  return a.getSpace() == b.getSpace() && a.getOffset() < endOf(b) &&
         b.getOffset() < endOf(a);
}

/// Whether result `output` of `kernel` begins at a cache line in each launch,
/// and lies where no input does, whose lines are in the caches, in those of the
/// first schedule that has any: that is a step, and it keeps what an evaluation
/// overwrites.
/// Without launches, whether no input may be there.
static bool liesApart(func::FuncOp kernel, unsigned output) {
  auto module = kernel->getParentOfType<ModuleOp>();
  std::optional<bool> isApart;
  for (auto schedule : module.getOps<func::FuncOp>()) {
    bool isLaunched = false, takesPlace = false;
    WalkResult result = schedule.walk([&](rt::LaunchOp launch) {
      if (launch.getKernel() != kernel.getSymName() ||
          launch.getOutputs().empty())
        return WalkResult::advance();
      auto to = launch.getOutputs()[output].getDefiningOp<rt::BufferOp>();
      if (!to || to.getOffset() % kLine != 0)
        return WalkResult::interrupt();
      isLaunched = true;
      for (Value input : launch.getInputs()) {
        auto from = input.getDefiningOp<rt::BufferOp>();
        takesPlace |= !from || overlap(from, to);
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return false;
    if (isLaunched && !isApart)
      isApart = !takesPlace;
  }
  if (isApart)
    return *isApart;
  return llvm::none_of(
      llvm::seq(kernel.getNumArguments()),
      [&](unsigned index) { return mayTakePlace(kernel, index, output); });
}

bool codegen::movesPastCaches(const LoopNest &nest, const Kernel &kernel) {
  func::FuncOp source = kernel.source;
  // Of a table, say, it may read a few rows.
  auto isWhole = [&](Type type) {
    return cast<ShapedType>(type).getNumElements() == nest.rows * nest.cols;
  };
  int64_t moved = 0;
  for (ArrayRef<Type> types :
       {source.getArgumentTypes(), source.getResultTypes()})
    for (Type type : types)
      moved += isWhole(type) ? bytesOf(type) : 0;
  return moved >= kBytesPastCaches;
}

SmallVector<unsigned> codegen::findStreamed(const LoopNest &nest,
                                            const Kernel &kernel) {
  if (!movesPastCaches(nest, kernel))
    return {};
  SmallVector<unsigned> streamed;
  for (const LoopNest::Output &output : nest.outputs()) {
    Type type = output.root.getType();
    int64_t rowBytes = bytesOf(type) / nest.rows;
    bool isLast = output.phase + 1 >= nest.numPhases();
    if (isLast && rowBytes % kLine == 0 &&
        liesApart(kernel.source, output.index))
      streamed.push_back(output.index);
  }
  return streamed;
}
