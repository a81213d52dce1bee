//===- Streams.cpp - What goes past the caches ----------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "reprise/Codegen/Common/LoopNest.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

/// What a kernel moves that no last-level cache keeps for the next one.
static constexpr int64_t kBytesPastCaches = 32 << 20;
static constexpr int64_t kLine = 64;
static_assert(
    rt::kDefaultAlignment % kLine == 0,
    "buffers begin at cache lines unless rt.alignment says otherwise");

static int64_t bytesOf(Type tensor) {
  auto type = cast<ShapedType>(tensor);
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// The bytes of the arena of a launch's operand.
static std::pair<int64_t, int64_t> rangeOf(Value buffer) {
  int64_t begin = int64_t(buffer.getDefiningOp<rt::BufferOp>().getOffset());
  return {begin, begin + bytesOf(buffer.getType())};
}

/// Whether result `output` of `kernel` lies where an input does, whose lines
/// are in the caches then: in a launch of the first schedule that has any (a
/// step keeps what an evaluation overwrites), or, without, if the kernel lets
/// it.
static bool takesPlaceOfInput(func::FuncOp kernel, unsigned output) {
  bool may = false;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    for (StringRef name : {rt::kInPlaceAttr, rt::kMayAliasAttr})
      if (auto result = kernel.getArgAttrOfType<IntegerAttr>(index, name))
        may |= result.getInt() == int64_t(output);
  if (!may)
    return false;
  auto module = kernel->getParentOfType<ModuleOp>();
  for (StringRef name : nn::kScheduleFunctions) {
    bool isLaunched = false, does = false;
    auto look = [&](rt::LaunchOp launch) {
      if (launch.getKernel() != kernel.getSymName() ||
          launch.getOutputs().empty())
        return;
      isLaunched = true;
      auto [begin, end] = rangeOf(launch.getOutputs()[output]);
      for (Value input : launch.getInputs()) {
        auto [first, last] = rangeOf(input);
        does |= first < end && begin < last;
      }
    };
    if (auto schedule = module.lookupSymbol<func::FuncOp>(name))
      schedule.walk(look);
    if (isLaunched)
      return does;
  }
  return true;
}

SmallVector<unsigned> codegen::findStreamed(const LoopNest &nest,
                                            const Kernel &kernel) {
  func::FuncOp source = kernel.source;
  auto alignment =
      source->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(
          rt::kAlignmentAttr);
  if (alignment && alignment.getInt() % kLine != 0)
    return {};
  // Of a table, say, it may read a few rows.
  auto isWhole = [&](Type type) {
    return cast<ShapedType>(type).getNumElements() == nest.rows * nest.cols;
  };
  int64_t moved = 0;
  for (ArrayRef<Type> types :
       {source.getArgumentTypes(), source.getResultTypes()})
    for (Type type : types)
      moved += isWhole(type) ? bytesOf(type) : 0;
  if (moved < kBytesPastCaches)
    return {};
  SmallVector<unsigned> streamed;
  for (const LoopNest::Output &output : nest.outputs()) {
    Type type = output.root.getType();
    int64_t rowBytes = bytesOf(type) / nest.rows;
    bool isLast = output.phase + 1 >= nest.numPhases();
    if (isWhole(type) && isLast && rowBytes % kLine == 0 &&
        !takesPlaceOfInput(source, output.index))
      streamed.push_back(output.index);
  }
  return streamed;
}
