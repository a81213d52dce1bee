//===- PackWeights.cpp - Weights as the panels of GEMMs -------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A working copy is packed in all schedules or in none, and so is what launches
// of one kernel write in one place. Copies start out as candidates, and whoever
// cannot be packed takes those along that share a place with it.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "reprise/ABI/Gemm.h"
#include "reprise/Dialect/NN/NNOps.h"
#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Kernels/Passes.h"

namespace reprise::kernels {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "reprise/Kernels/Passes.h.inc"
} // namespace reprise::kernels

using namespace mlir;
using namespace reprise;

namespace {
struct PackWeights : public kernels::impl::PackWeightsBase<PackWeights> {
  using PackWeightsBase::PackWeightsBase;

  void runOnOperation() override;

private:
  void findCandidates();
  /// The candidate that `value` is the copy of, or null.
  StringAttr getCandidate(Value value) const;
  func::FuncOp getKernel(rt::LaunchOp launch);
  bool canPack(BlockArgument copy);
  bool canPack(rt::LaunchOp launch, unsigned input, StringAttr parameter);
  bool isWrittenInPlace(func::FuncOp schedule, unsigned result);
  void pack(func::FuncOp schedule);
  void packResult(func::FuncOp kernel, unsigned input);

  SmallVector<func::FuncOp> schedules;
  DenseMap<StringAttr, SmallVector<rt::LaunchOp>> launchesOf;
  DenseSet<StringAttr> candidates; ///< Names of parameters.
};
} // namespace

/// Whether `function` is one block that returns.
static bool hasOneBlock(func::FuncOp function) {
  return !function.isExternal() && function.getBody().hasOneBlock() &&
         isa<func::ReturnOp>(function.getBody().front().getTerminator());
}

static StringAttr getParameter(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                               nn::kWorkingAttr);
}

/// The packed type of a matrix of bf16, or null.
static RankedTensorType getPackedType(Type type) {
  auto matrix = dyn_cast<RankedTensorType>(type);
  if (!matrix || matrix.getRank() != 2 || !matrix.getElementType().isBF16())
    return {};
  auto shape = rt::getPackedShape(matrix.getDimSize(0), matrix.getDimSize(1));
  return shape ? matrix.clone(*shape) : RankedTensorType();
}

StringAttr PackWeights::getCandidate(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  StringAttr name = argument ? getParameter(argument) : StringAttr();
  return name && candidates.contains(name) ? name : StringAttr();
}

void PackWeights::findCandidates() {
  for (auto function : getOperation().getOps<func::FuncOp>()) {
    if (function->hasAttr(rt::kKernelAttr) || !hasOneBlock(function))
      continue;
    schedules.push_back(function);
    for (auto launch : function.getOps<rt::LaunchOp>())
      launchesOf[launch.getKernelAttr().getAttr()].push_back(launch);
    for (BlockArgument argument : function.getArguments())
      if (StringAttr name = getParameter(argument))
        candidates.insert(name);
  }
}

/// The kernel, if it has a body of one block; null otherwise.
func::FuncOp PackWeights::getKernel(rt::LaunchOp launch) {
  auto kernel = getOperation().lookupSymbol<func::FuncOp>(
      launch.getKernelAttr().getAttr());
  return kernel && hasOneBlock(kernel) ? kernel : func::FuncOp();
}

/// Whether all of B is `matrix`, row by row.
static bool readsAll(rt::GemmOp gemm, RankedTensorType matrix) {
  int64_t rows = gemm.getK(), cols = gemm.getN();
  if (gemm.getTransposeB())
    std::swap(rows, cols);
  return matrix.getShape() == ArrayRef<int64_t>({rows, cols}) &&
         int64_t(gemm.getLdb()) == cols && !gemm.getBatch() &&
         !gemm.getOffsets();
}

/// Whether `result` is what the kernel returns, once, packed or not.
static bool isReturned(Value result) {
  while (result.hasOneUse()) {
    Operation *user = *result.user_begin();
    if (isa<func::ReturnOp>(user))
      return true;
    if (!isa<tensor::ExpandShapeOp, linalg::PackOp>(user))
      return false;
    result = user->getResult(0);
  }
  return false;
}

/// Whether `loop` makes results of the kernel, element by element, wherever
/// they are, from what that is given.
static bool isPointwise(linalg::GenericOp loop) {
  auto isGiven = [](Value input) {
    if (auto flat = input.getDefiningOp<tensor::CollapseShapeOp>())
      input = flat.getSrc();
    return isa<BlockArgument>(input);
  };
  return loop.getNumLoops() == 1 && loop.getNumReductionLoops() == 0 &&
         loop.getBody()->getOps<linalg::IndexOp>().empty() &&
         llvm::all_of(loop.getInputs(), isGiven) &&
         llvm::all_of(loop.getRegionOutputArgs(),
                      [](Value output) { return output.use_empty(); }) &&
         llvm::all_of(loop.getResults(), isReturned);
}

/// Whether a kernel is such loops, which make all that it returns.
static bool isPointwise(func::FuncOp kernel) {
  unsigned numMade = 0;
  for (Operation &op : kernel.getBody().front()) {
    auto loop = dyn_cast<linalg::GenericOp>(op);
    if (loop ? !isPointwise(loop)
             : !isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
                    tensor::EmptyOp, linalg::PackOp, func::ReturnOp>(op))
      return false;
    numMade += loop ? loop->getNumResults() : 0;
  }
  return numMade == kernel.getNumResults();
}

/// The number of the result in place of `input`, an argument that nothing
/// reads, if a loop makes it that has no other in bf16.
static std::optional<unsigned> getResultInPlace(func::FuncOp kernel,
                                                unsigned input) {
  auto number = kernel.getArgAttrOfType<IntegerAttr>(input, rt::kInPlaceAttr);
  if (!number || number.getInt() < 0 ||
      number.getInt() >= kernel.getNumResults() ||
      !kernel.getArgument(input).use_empty() || !isPointwise(kernel))
    return std::nullopt;
  for (unsigned other = 0; other < kernel.getNumArguments(); ++other)
    if (other != input && kernel.getArgAttr(other, rt::kInPlaceAttr) == number)
      return std::nullopt;
  Operation *exit = kernel.getBody().front().getTerminator();
  auto rows =
      exit->getOperand(number.getInt()).getDefiningOp<tensor::ExpandShapeOp>();
  auto loop = rows ? rows.getSrc().getDefiningOp<linalg::GenericOp>() : nullptr;
  auto isRounded = [](Type type) {
    return getElementTypeOrSelf(type).isBF16();
  };
  if (!loop || llvm::count_if(loop->getResultTypes(), isRounded) != 1)
    return std::nullopt;
  return number.getInt();
}

bool PackWeights::canPack(rt::LaunchOp launch, unsigned input,
                          StringAttr parameter) {
  func::FuncOp kernel = getKernel(launch);
  std::optional<unsigned> result;
  if (kernel)
    result = getResultInPlace(kernel, input);
  if (!result || !launch.getResult(*result).hasOneUse())
    return false;
  OpOperand &use = *launch.getResult(*result).use_begin();
  auto schedule = launch->getParentOfType<func::FuncOp>();
  return isa<func::ReturnOp>(use.getOwner()) &&
         schedule.getResultAttrOfType<StringAttr>(
             use.getOperandNumber(), nn::kWorkingAttr) == parameter &&
         llvm::all_of(launchesOf[kernel.getNameAttr()],
                      [&](rt::LaunchOp other) {
                        return getCandidate(other.getInputs()[input]);
                      });
}

bool PackWeights::canPack(BlockArgument copy) {
  auto function = cast<func::FuncOp>(copy.getOwner()->getParentOp());
  auto matrix = dyn_cast<RankedTensorType>(copy.getType());
  return getPackedType(copy.getType()) &&
         !function.getArgAttr(copy.getArgNumber(), nn::kRowsAttr) &&
         llvm::all_of(copy.getUses(), [&](auto &use) {
           if (auto gemm = dyn_cast<rt::GemmOp>(use.getOwner()))
             return &use == &gemm.getBMutable() && readsAll(gemm, matrix);
           auto launch = dyn_cast<rt::LaunchOp>(use.getOwner());
           return launch &&
                  canPack(launch, use.getOperandNumber(), getParameter(copy));
         });
}

/// Whether what is returned as the new copy of a candidate is written in place
/// of the old one.
bool PackWeights::isWrittenInPlace(func::FuncOp schedule, unsigned result) {
  auto name =
      schedule.getResultAttrOfType<StringAttr>(result, nn::kWorkingAttr);
  Value copy = schedule.getBody().front().getTerminator()->getOperand(result);
  auto launch = copy.getDefiningOp<rt::LaunchOp>();
  func::FuncOp kernel = launch ? getKernel(launch) : func::FuncOp();
  return kernel &&
         llvm::any_of(llvm::enumerate(launch.getInputs()), [&](auto input) {
           return getCandidate(input.value()) == name &&
                  getResultInPlace(kernel, input.index()) ==
                      cast<OpResult>(copy).getResultNumber();
         });
}

/// Lets `kernel` write the result in place of `input` packed, unless it does so
/// already.
void PackWeights::packResult(func::FuncOp kernel, unsigned input) {
  BlockArgument argument = kernel.getArgument(input);
  RankedTensorType packed = getPackedType(argument.getType());
  if (!packed)
    return;
  unsigned result = *getResultInPlace(kernel, input);
  Operation *exit = kernel.getBody().front().getTerminator();
  OpBuilder builder(exit);
  Location loc = exit->getLoc();
  Value empty = tensor::EmptyOp::create(builder, loc, packed.getShape(),
                                        packed.getElementType());
  ArrayRef<int64_t> tile = packed.getShape().take_back(2);
  auto pack = linalg::PackOp::create(
      builder, loc, exit->getOperand(result), empty,
      /*innerDimsPos=*/ArrayRef<int64_t>{1, 0},
      getAsIndexOpFoldResult(builder.getContext(), tile),
      /*paddingValue=*/std::nullopt, /*outerDimsPerm=*/ArrayRef<int64_t>{1, 0});
  exit->setOperand(result, pack.getResult());
  argument.setType(packed);
  kernel.setType(builder.getFunctionType(kernel.getBody().getArgumentTypes(),
                                         exit->getOperandTypes()));
}

void PackWeights::pack(func::FuncOp schedule) {
  OpBuilder builder(schedule.getContext());
  for (BlockArgument argument : schedule.getArguments()) {
    if (!getCandidate(argument))
      continue;
    argument.setType(getPackedType(argument.getType()));
    for (OpOperand &use : argument.getUses()) {
      if (auto gemm = dyn_cast<rt::GemmOp>(use.getOwner())) {
        gemm.setPackedB(true);
        gemm.setLdb(gemm.getTransposeB() ? gemm.getN() : gemm.getK());
        continue;
      }
      auto launch = cast<rt::LaunchOp>(use.getOwner());
      func::FuncOp kernel = getKernel(launch);
      packResult(kernel, use.getOperandNumber());
      for (auto [result, type] :
           llvm::zip_equal(launch.getResults(), kernel.getResultTypes()))
        result.setType(type);
    }
  }
  Block &block = schedule.getBody().front();
  schedule.setType(builder.getFunctionType(
      block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
}

void PackWeights::runOnOperation() {
  // A library packs for itself; and whole cache lines are written.
  auto alignment =
      getOperation()->getAttrOfType<IntegerAttr>(rt::kAlignmentAttr);
  if (getOperation()->hasAttr(rt::kGemmWorkspaceAttr) ||
      (alignment && alignment.getInt() % rt::kDefaultAlignment != 0))
    return markAllAnalysesPreserved();
  // A pass runs on one module after another.
  schedules.clear();
  launchesOf.clear();
  candidates.clear();
  findCandidates();
  for (bool changed = true; changed;) {
    changed = false;
    for (func::FuncOp schedule : schedules) {
      for (BlockArgument argument : schedule.getArguments())
        if (StringAttr name = getCandidate(argument);
            name && !canPack(argument))
          changed |= candidates.erase(name);
      for (unsigned result = 0; result < schedule.getNumResults(); ++result)
        if (auto name = schedule.getResultAttrOfType<StringAttr>(
                result, nn::kWorkingAttr);
            name && candidates.contains(name) &&
            !isWrittenInPlace(schedule, result))
          changed |= candidates.erase(name);
    }
  }
  for (func::FuncOp schedule : schedules)
    pack(schedule);
}
