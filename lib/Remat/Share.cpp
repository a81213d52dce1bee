//===- Share.cpp - Values that ranks keep parts of ------------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Share.h"
#include "reprise/Dialect/NN/Parts.h"
#include "reprise/Support/Borders.h"
#include <map>

using namespace mlir;
using namespace reprise;
using namespace reprise::remat;

BlockArgument remat::getBorder(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto input = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       nn::kInputAttr);
    if (input && input.getValue() == kBorder)
      return argument;
  }
  return {};
}

//===----------------------------------------------------------------------===//
// What ranks have of their own
//===----------------------------------------------------------------------===//

/// Whether ranks that differ along `other` may differ along the axis, too. Of
/// an axis of `n` ranks at a step of `s` numbers of ranks differ by multiples
/// of `s` below `n * s`.
bool OwnValues::overlaps(StringRef other) const {
  if (other == axis || !mesh)
    return other == axis;
  int64_t step = mesh.getStride(axis), next = mesh.getStride(other);
  return step < next * mesh.getSize(other) && next < step * mesh.getSize(axis);
}

bool OwnValues::isOwn(func::FuncOp function, BlockArgument argument) const {
  unsigned number = argument.getArgNumber();
  if (auto layout =
          function.getArgAttrOfType<nn::LayoutAttr>(number, nn::kLayoutAttr))
    for (auto [name, word] :
         llvm::zip_equal(layout.getNames(), layout.getWords()))
      if (word != nn::Word::Replicated && word != nn::Word::Invariant &&
          overlaps(name))
        return true;
  // Chunks pass on what ranks have between layers: of its type.
  auto module = function->getParentOfType<ModuleOp>();
  auto input = function.getArgAttrOfType<StringAttr>(number, nn::kInputAttr);
  return input && input.getValue() == kBorder &&
         argument.getType() == getBorder(function).getType() && module &&
         module->hasAttr(nn::kSequenceParallelAttr);
}

bool OwnValues::isOwn(Operation *op) const {
  bool readsOwn = llvm::any_of(op->getOperands(),
                               [&](Value value) { return contains(value); });
  if (nn::isCollective(op)) {
    StringRef along = nn::getAxis(op);
    return overlaps(along) ? along != axis || !nn::makesInvariant(op)
                           : readsOwn;
  }
  StringAttr place = nn::getCoordinateAxis(op);
  return readsOwn || (place && overlaps(place));
}

OwnValues::OwnValues(func::FuncOp function, const Step &step, StringRef axis)
    : axis(axis) {
  if (auto module = function->getParentOfType<ModuleOp>())
    mesh = module->getAttrOfType<nn::MeshAttr>(nn::kMeshAttr);
  for (BlockArgument argument : function.getArguments())
    if (isOwn(function, argument))
      own.insert(argument);
  for (Operation *op : step.forward)
    if (isOwn(op))
      own.insert_range(op->getResults());
}

int64_t remat::countRanks(func::FuncOp function, StringRef axis) {
  auto module = function->getParentOfType<ModuleOp>();
  return module ? nn::getAxisSize(module, axis) : 1;
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

bool remat::canBeCut(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && isa<FloatType>(type.getElementType());
}

int64_t remat::getCutDim(Value value, int64_t ranks) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  const int64_t *found =
      llvm::find_if(shape, [&](int64_t size) { return size % ranks == 0; });
  return found == shape.end() ? -1 : found - shape.begin();
}

void remat::decideToShare(Value value, StringRef axis, int64_t segment,
                          StringRef reason) {
  auto decision = ShareAttr::get(value.getContext(), axis, segment, reason);
  if (Operation *op = value.getDefiningOp())
    return op->setAttr(kDecisionAttr, decision);
  auto argument = cast<BlockArgument>(value);
  cast<func::FuncOp>(argument.getOwner()->getParentOp())
      .setArgAttr(argument.getArgNumber(), kDecisionAttr, decision);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// How messages call a value that is decided on.
static std::string describe(Value value) {
  auto result = dyn_cast<OpResult>(value);
  return result ? getFullName(result) : "what the chunk before passes on";
}

void remat::explainCut(InFlightDiagnostic &error, Value value, StringRef axis,
                       int64_t ranks) {
  error << "needs a dimension that the " << ranks << " ranks along " << axis
        << " divide, for each to keep a part of " << describe(value)
        << ", but got " << value.getType();
}

void remat::explainAbsence(InFlightDiagnostic &error, const Step &step,
                           Value value) {
  error << describe(value) << ", which "
        << (step.getShare(value) ? "ranks keep parts of" : "is dropped");
  error.attachNote(value.getLoc()) << "it is computed, and decided on, here";
}

LogicalResult remat::verifyShares(func::FuncOp function, const Step &step) {
  std::map<std::string, OwnValues> own; // By axis.
  auto verify = [&](Value value) -> LogicalResult {
    ShareAttr decision = step.getShare(value);
    if (!decision)
      return success();
    StringRef axis = decision.getAxis();
    int64_t ranks = countRanks(function, axis);
    if (ranks < 2)
      return emitError(value.getLoc())
             << "needs several ranks along '" << axis
             << "' to be shared, but there is " << ranks;
    if (!canBeCut(value) || getCutDim(value, ranks) < 0) {
      InFlightDiagnostic error = emitError(value.getLoc());
      explainCut(error, value, axis, ranks);
      return error;
    }
    if (own.try_emplace(axis.str(), function, step, axis)
            .first->second.contains(value))
      return emitError(value.getLoc())
             << "needs to be the same on all ranks along '" << axis
             << "' to be shared, but each has its own";
    return success();
  };
  for (BlockArgument argument : function.getArguments())
    if (failed(verify(argument)))
      return failure();
  for (Operation *op : step.forward)
    if (op->getNumResults() == 1 && failed(verify(op->getResult(0))))
      return failure();
  return success();
}
