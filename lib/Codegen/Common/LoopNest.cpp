//===- LoopNest.cpp - What a kernel of linalg ops loops over ----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/LoopNest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "reprise/Dialect/RT/RTOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

Value codegen::getRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

static StringRef nameOf(Role role) {
  switch (role) {
  case Role::Uniform:
    return "one for all";
  case Role::Row:
    return "one for each row";
  case Role::Column:
    return "one for each column";
  case Role::Full:
    return "one for each row and column";
  }
  llvm_unreachable("all roles named");
}

static bool isRank1Reduction(linalg::GenericOp op) {
  return op.getNumLoops() == 1 && op.getNumReductionLoops() == 1;
}

/// Whether `op` computes with numbers, and needs no library for it.
static bool isScalarOp(Operation *op) {
  if (op->getNumRegions() != 0 ||
      llvm::any_of(op->getResultTypes(),
                   [](Type t) { return !t.isIntOrIndexOrFloat(); }))
    return false;
  return isa<arith::ArithDialect>(op->getDialect()) ||
         isa<math::AbsFOp, math::CeilOp, math::CosOp, math::ErfOp, math::ExpOp,
             math::Exp2Op, math::ExpM1Op, math::FloorOp, math::FmaOp,
             math::LogOp, math::Log1pOp, math::Log2Op, math::RsqrtOp,
             math::SinOp, math::SqrtOp, math::TanhOp>(op);
}

/// Whether emission knows the elements of `root`.
static bool isKnown(Value root) {
  if (isa<BlockArgument>(root) || root.getDefiningOp<linalg::GenericOp>())
    return true;
  auto fill = root.getDefiningOp<linalg::FillOp>();
  return fill && fill.getInputs()[0].getType() ==
                     cast<ShapedType>(root.getType()).getElementType();
}

bool LoopNest::isReduction(Operation *op) const {
  auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
  return generic && generic.getNumReductionLoops() > 0;
}

//===----------------------------------------------------------------------===//
// The space
//===----------------------------------------------------------------------===//

LogicalResult LoopNest::findGenerics(func::FuncOp kernel) {
  for (Operation &op : kernel.getBody().front()) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      generics.push_back(generic);
      continue;
    }
    if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::EmptyOp,
            linalg::FillOp, func::ReturnOp, rt::StreamOp>(op) ||
        isScalarOp(&op))
      continue;
    if (auto extract = dyn_cast<tensor::ExtractOp>(op);
        extract && isa<BlockArgument>(getRoot(extract.getTensor())))
      continue;
    return op.emitOpError("has no code in a kernel of linalg ops");
  }
  return success();
}

/// A flat kernel is as long as its ops, or without any as its largest result.
static int64_t getFlatLength(ArrayRef<linalg::GenericOp> generics,
                             func::FuncOp kernel) {
  int64_t length = 1;
  for (linalg::GenericOp op : generics)
    if (op.getNumLoops() == 1)
      length = std::max(length, op.getStaticLoopRanges()[0]);
  if (generics.empty())
    for (Type type : kernel.getResultTypes())
      length = std::max(length, cast<ShapedType>(type).getNumElements());
  return length;
}

LogicalResult LoopNest::findSpace(func::FuncOp kernel) {
  if (failed(findGenerics(kernel)))
    return failure();
  linalg::GenericOp first, rowReduction, columnReduction;
  for (linalg::GenericOp op : generics) {
    unsigned loops = op.getNumLoops(), reductions = op.getNumReductionLoops();
    auto iterators = op.getIteratorTypesArray();
    if (loops > 2 || reductions > 1)
      return op.emitOpError("needs at most two loops, one of them a reduction, "
                            "but got ")
             << loops << " with " << reductions << " reductions";
    if (reductions)
      (loops == 2 && iterators[0] == utils::IteratorType::reduction
           ? columnReduction
           : rowReduction) = op;
    SmallVector<int64_t> ranges = op.getStaticLoopRanges();
    if (llvm::any_of(ranges, ShapedType::isDynamic))
      return op.emitOpError("needs loops of a length known here");
    if (loops == 2 || isRank1Reduction(op)) {
      int64_t r = loops == 2 ? ranges[0] : 1, c = ranges.back();
      if (first && (r != rows || c != cols)) {
        InFlightDiagnostic error =
            op.emitOpError("needs the iteration space of "
                           "its kernel, ")
            << rows << "x" << cols << ", but got " << r << "x" << c;
        error.attachNote(first.getLoc()) << "which is given here";
        return error;
      }
      first = op, rows = r, cols = c;
    }
  }
  if (rowReduction && columnReduction) {
    InFlightDiagnostic error =
        columnReduction.emitOpError("reduces columns in a kernel that reduces "
                                    "rows; these need two kernels");
    error.attachNote(rowReduction.getLoc()) << "rows are reduced here";
    return error;
  }
  if (first) {
    shape = columnReduction ? Shape::Columns : Shape::Rows;
    return success();
  }

  cols = getFlatLength(generics, kernel);
  return success();
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// The role of a generic where its loops alone tell it.
FailureOr<std::optional<Role>> LoopNest::roleByLength(linalg::GenericOp op) {
  if (op.getNumLoops() == 2 || isRank1Reduction(op))
    return std::optional<Role>(Role::Full);
  if (op.getNumLoops() == 0) {
    // A scalar computed from the reduction of the one row there is.
    bool ofRow = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *from = getRoot(operand).getDefiningOp();
      return isReduction(from) ||
             (roles.count(from) && roles.lookup(from) == Role::Row);
    });
    return std::optional<Role>(ofRow ? Role::Row : Role::Uniform);
  }
  int64_t length = op.getStaticLoopRanges()[0];
  bool row = shape != Shape::Flat && length == rows, column = length == cols;
  bool full = length == rows * cols;
  bool isOpen = column || (full && shape == Shape::Rows);
  if (!row && !column && !full)
    return op.emitOpError("needs a loop over the rows, the columns or all "
                          "elements of ")
           << rows << "x" << cols << ", but got " << length;
  if (row && isOpen)
    return std::optional<Role>();
  return std::optional<Role>(row      ? Role::Row
                             : column ? Role::Column
                                      : Role::Full);
}

/// The role of what a generic of one loop reads or is read by, once that has
/// one.
std::optional<Role> LoopNest::roleByNeighbours(linalg::GenericOp op) const {
  bool isAll = rows > 1 && op.getStaticLoopRanges()[0] == rows * cols;
  for (Value operand : op->getOperands()) {
    Operation *from = getRoot(operand).getDefiningOp();
    if (isReduction(from))
      return shape == Shape::Columns ? Role::Column : Role::Row;
    if (from && roles.count(from) &&
        (roles.lookup(from) != Role::Full || isAll))
      return roles.lookup(from);
  }
  for (linalg::GenericOp user : generics)
    for (OpOperand &operand : user->getOpOperands()) {
      if (getRoot(operand.get()).getDefiningOp() != op || !roles.count(user))
        continue;
      AffineMap map = user.getMatchingIndexingMap(&operand);
      if (map.getNumResults() == 1)
        return dimRole(user, map.getDimPosition(0));
      if (map.getNumResults() == 2 && isAll)
        return Role::Full;
    }
  return std::nullopt;
}

/// Of generics of one parallel loop, those that could be rows, columns or all
/// elements by their length, where a row has one element or there is one row,
/// take the role of what they read or are read by.
LogicalResult LoopNest::findRoles(func::FuncOp kernel) {
  SmallVector<linalg::GenericOp> open;
  for (linalg::GenericOp op : generics) {
    FailureOr<std::optional<Role>> role = roleByLength(op);
    if (failed(role))
      return failure();
    if (*role)
      roles[op] = **role;
    else
      open.push_back(op);
  }
  for (bool changed = true; changed && !open.empty();) {
    changed = false;
    for (linalg::GenericOp op : open)
      if (std::optional<Role> role = roleByNeighbours(op)) {
        roles[op] = *role;
        changed = true;
      }
    llvm::erase_if(open, [&](linalg::GenericOp op) { return roles.count(op); });
  }
  for (linalg::GenericOp op : open)
    roles[op] = shape == Shape::Rows && rows > 1 ? Role::Row : Role::Column;
  return success();
}

Role LoopNest::dimRole(linalg::GenericOp op, unsigned dim) const {
  if (op.getNumLoops() == 2)
    return dim == 0 ? Role::Row : Role::Column;
  return roles.lookup(op);
}

/// With one row, a row is uniform and a column is everything.
bool LoopNest::agree(Role access, Role role) const {
  if (access == role)
    return true;
  auto perColumn = [](Role r) { return r == Role::Column || r == Role::Full; };
  return rows == 1 && perColumn(access) == perColumn(role);
}

Role LoopNest::resultRole(Value root) const {
  Operation *op = root.getDefiningOp();
  assert(op && roles.count(op) && "only generics have roles");
  if (isReduction(op))
    return shape == Shape::Columns ? Role::Column : Role::Row;
  return roles.lookup(op);
}

Role LoopNest::operandRole(linalg::GenericOp op, unsigned index) const {
  AffineMap map = op.getIndexingMapsArray()[index];
  Role role = Role::Uniform;
  if (map.getNumResults() == 2)
    role = Role::Full;
  else if (map.getNumResults() == 1)
    role = dimRole(op, map.getDimPosition(0));
  Value root = getRoot(op->getOperand(index));
  if (rows == 1 && isa_and_nonnull<linalg::GenericOp>(root.getDefiningOp()))
    return resultRole(root);
  return role;
}

//===----------------------------------------------------------------------===//
// What emission can do
//===----------------------------------------------------------------------===//

/// Whether `value` differs from column to column.
static bool varies(const LoopNest &nest, linalg::GenericOp op, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    if (argument.getOwner() != op.getBody())
      return false;
    Role role = nest.operandRole(op, argument.getArgNumber());
    return role == Role::Column || role == Role::Full;
  }
  Operation *def = value.getDefiningOp();
  if (def->getBlock() != op.getBody())
    return false;
  if (auto index = dyn_cast<linalg::IndexOp>(def))
    return nest.dimRole(op, index.getDim()) != Role::Row;
  return llvm::any_of(def->getOperands(),
                      [&](Value operand) { return varies(nest, op, operand); });
}

static LogicalResult checkExtract(const LoopNest &nest, linalg::GenericOp op,
                                  tensor::ExtractOp extract) {
  if (!isa<BlockArgument>(getRoot(extract.getTensor())))
    return extract.emitOpError("needs a tensor that is an input of the kernel");
  for (auto [dim, index] : llvm::enumerate(extract.getIndices())) {
    if (!varies(nest, op, index))
      continue;
    bool last = dim + 1 == extract.getIndices().size();
    if (!last || !index.getDefiningOp<linalg::IndexOp>())
      return extract.emitOpError(
                 "needs the column itself as last index and "
                 "nothing else that varies with the column, but "
                 "index #")
             << dim << " does";
  }
  return success();
}

static LogicalResult checkBody(const LoopNest &nest, linalg::GenericOp op) {
  auto result = op.getBody()->walk([&](Operation *inner) -> WalkResult {
    if (auto extract = dyn_cast<tensor::ExtractOp>(inner))
      return checkExtract(nest, op, extract);
    if (isa<linalg::IndexOp, linalg::YieldOp, rt::StreamOp, rt::RandomWordOp>(
            inner) ||
        isScalarOp(inner))
      return WalkResult::advance();
    return inner->emitOpError("has no code inside linalg.generic");
  });
  return failure(result.wasInterrupted());
}

/// Whether result `result` of a reduction can be made of parts.
static LogicalResult checkReduction(linalg::GenericOp op, unsigned result,
                                    LoopNest::Shape shape) {
  Value out = op.getRegionOutputArgs()[result];
  Operation *combine =
      op.getBody()->getTerminator()->getOperand(result).getDefiningOp();
  if (!combine || combine->getNumOperands() != 2 || !out.hasOneUse() ||
      !llvm::is_contained(combine->getOperands(), out))
    return op.emitOpError("needs a reduction that combines its accumulator "
                          "with a value, once, and yields that");
  if (shape == LoopNest::Shape::Columns)
    return success();
  // Every lane starts from the initial value, so it must be neutral.
  bool idempotent =
      isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
          arith::MinNumFOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
          arith::MinUIOp, arith::AndIOp, arith::OrIOp>(combine);
  auto fill = getRoot(op.getDpsInits()[result]).getDefiningOp<linalg::FillOp>();
  auto constant =
      fill ? fill.getInputs()[0].getDefiningOp<arith::ConstantOp>() : nullptr;
  std::optional<TypedAttr> neutral = arith::getNeutralElement(combine);
  auto isNeutral = [&] {
    if (auto value = dyn_cast<FloatAttr>(constant.getValue()))
      return neutral &&
             value.getValue().compare(cast<FloatAttr>(*neutral).getValue()) ==
                 llvm::APFloat::cmpEqual;
    return neutral && constant.getValue() == *neutral;
  };
  if (!constant || !(idempotent || isNeutral()))
    return op.emitOpError("needs a row reduction that starts from a "
                          "linalg.fill with a neutral constant");
  return success();
}

LogicalResult LoopNest::check(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    AffineMap map = maps[index];
    bool plain = map.isProjectedPermutation() &&
                 (map.getNumResults() < 2 || map.isIdentity());
    if (!plain)
      return op.emitOpError(
                 "needs operands indexed by the row, the column, both "
                 "or neither, but #")
             << index << " has " << AffineMapAttr::get(map);
    Value root = getRoot(operand);
    if (!op.getBody()->getArgument(index).use_empty() && !isKnown(root))
      return op.emitOpError(
                 "needs operands that are inputs of the kernel, filled "
                 "with a scalar of their type, or results of "
                 "linalg.generic, but #")
             << index << " is none";
    auto from = dyn_cast_or_null<linalg::GenericOp>(root.getDefiningOp());
    if (!from)
      continue;
    Role access = operandRole(op, index), role = resultRole(root);
    if (!agree(access, role)) {
      InFlightDiagnostic error = op.emitOpError("reads operand #")
                                 << index << " as " << nameOf(access) << " of "
                                 << rows << "x" << cols;
      error.attachNote(from.getLoc())
          << "it is made as " << nameOf(role) << " here, as " << root.getType();
      return error;
    }
  }

  if (failed(checkBody(*this, op)))
    return failure();
  if (!isReduction(op))
    return success();

  for (unsigned result = 0; result < op.getNumResults(); ++result)
    if (failed(checkReduction(op, result, shape)))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

LogicalResult LoopNest::findPhases(func::FuncOp kernel) {
  for (linalg::GenericOp op : generics) {
    int64_t phase = 0;
    for (Value operand : op->getOperands()) {
      Operation *from = getRoot(operand).getDefiningOp();
      if (from && phases.count(from))
        phase = std::max(phase, phases[from] + isReduction(from));
    }
    phases[op] = phase;
    if (roles[op] == Role::Full)
      phaseCount = std::max(phaseCount, phase + 1);
    if (shape == Shape::Columns && roles[op] == Role::Full && phase > 0)
      return op.emitOpError("reads a reduced column in the loop over the rows; "
                            "this needs two kernels");
  }
  return success();
}

/// Whether computing `root` in `phase` reads the kernel's `argument`.
bool LoopNest::reads(Value root, Value argument, int64_t phase) const {
  if (root == argument)
    return true;
  auto op = dyn_cast_or_null<linalg::GenericOp>(root.getDefiningOp());
  if (!op || storedBefore(root, phase) ||
      (isReduction(op) && phases.lookup(op) < phase))
    return false;
  bool found = llvm::any_of(op->getOperands(), [&](Value operand) {
    return reads(getRoot(operand), argument, phase);
  });
  op.getBody()->walk([&](tensor::ExtractOp extract) {
    found |= getRoot(extract.getTensor()) == argument;
  });
  return found;
}

bool codegen::mayTakePlace(func::FuncOp kernel, unsigned argument,
                           unsigned output) {
  for (StringRef name : {rt::kInPlaceAttr, rt::kMayAliasAttr})
    if (auto result = kernel.getArgAttrOfType<IntegerAttr>(argument, name))
      if (result.getInt() == int64_t(output))
        return true;
  return false;
}

const LoopNest::Output *LoopNest::storedBefore(Value root,
                                               int64_t phase) const {
  for (const Output &output : outs)
    if (output.root == root && output.role == Role::Full &&
        output.phase < phase && shape == Shape::Rows)
      return &output;
  return nullptr;
}

FailureOr<LoopNest::Output> LoopNest::getOutput(OpOperand &result) const {
  Operation *ret = result.getOwner();
  const unsigned index = result.getOperandNumber();
  Value root = getRoot(result.get());
  Type type = result.get().getType();
  int64_t count = cast<ShapedType>(type).getNumElements();
  if (!isKnown(root))
    return ret->emitOpError("needs to return inputs of the kernel, filled "
                            "tensors or results of linalg.generic, but #")
           << index << " is none";
  Role role = Role::Uniform;
  int64_t phase = 0;
  if (isa_and_nonnull<linalg::GenericOp>(root.getDefiningOp())) {
    role = resultRole(root);
    // A reduction is there to be stored when its pass is over.
    phase =
        phases.lookup(root.getDefiningOp()) + isReduction(root.getDefiningOp());
  } else if (count == rows * cols) {
    role = Role::Full;
  } else if (count == rows) {
    role = Role::Row;
  } else if (count == cols) {
    role = Role::Column;
  } else if (count != 1) {
    return ret->emitOpError("needs results that fit a kernel of ")
           << rows << "x" << cols << ", but #" << index << " is " << type;
  }
  // With one row there are only two roles, which go by the names that the
  // emitter of the shape has for them.
  if (rows == 1 && shape == Shape::Rows)
    role = role == Role::Full || role == Role::Column ? Role::Full : Role::Row;
  else if (rows == 1 && role == Role::Full)
    role = Role::Column;
  bool stored = role == Role::Full || role == Role::Column ||
                (role == Role::Row && shape == Shape::Rows) || rows * cols == 1;
  if (role == Role::Column && shape == Shape::Rows)
    stored = false;
  if (!stored)
    return ret->emitOpError("returns in #")
           << index << " a value of which there is " << nameOf(role)
           << "; tasks that share it would all write it";
  return Output{root, role, phase, index};
}

LogicalResult LoopNest::findOutputs(func::FuncOp kernel) {
  Operation *ret = kernel.getBody().front().getTerminator();
  for (OpOperand &result : ret->getOpOperands()) {
    FailureOr<Output> output = getOutput(result);
    if (failed(output))
      return failure();
    outs.push_back(*output);
  }
  return delayOutputs(kernel);
}

/// Whether what is computed in `phase` reads the kernel's `argument`.
bool LoopNest::readsIn(Value argument, int64_t phase) const {
  for (linalg::GenericOp op : generics)
    if (isReduction(op) && phases.lookup(op) == phase &&
        reads(op.getResult(0), argument, phase))
      return true;
  return llvm::any_of(outs, [&](const Output &output) {
    return output.phase == phase && reads(output.root, argument, phase);
  });
}

/// An input whose buffer is that of an output must not be read after the output
/// is stored: such an output is stored in the last phase that reads it.
LogicalResult LoopNest::delayOutputs(func::FuncOp kernel) {
  for (bool changed = true; changed;) {
    changed = false;
    for (auto [number, argument] : llvm::enumerate(kernel.getArguments())) {
      for (StringRef name : {rt::kInPlaceAttr, rt::kMayAliasAttr}) {
        auto result = kernel.getArgAttrOfType<IntegerAttr>(number, name);
        if (!result)
          continue;
        if (result.getInt() < 0 || result.getInt() >= int64_t(outs.size()))
          return kernel.emitError("needs '")
                 << name << "' of argument #" << number << " to be one of "
                 << outs.size() << " results, but got " << result.getInt();
        Output &output = outs[result.getInt()];
        int64_t last = phaseCount - 1;
        for (const Output &other : outs)
          last = std::max(last, other.phase);
        for (int64_t phase = last; phase > output.phase; --phase) {
          if (output.role != Role::Full || !readsIn(argument, phase))
            continue;
          output.phase = phase;
          phaseCount = std::max(phaseCount, phase + 1);
          changed = true;
        }
      }
    }
  }
  return success();
}

SmallVector<linalg::GenericOp> LoopNest::reductions() const {
  SmallVector<linalg::GenericOp> result;
  for (linalg::GenericOp op : generics)
    if (isReduction(op))
      result.push_back(op);
  return result;
}

FailureOr<LoopNest> LoopNest::get(func::FuncOp kernel) {
  LoopNest nest;
  if (failed(nest.findSpace(kernel)) || failed(nest.findRoles(kernel)))
    return failure();
  for (linalg::GenericOp op : nest.generics)
    if (failed(nest.check(op)))
      return failure();
  if (failed(nest.findPhases(kernel)) || failed(nest.findOutputs(kernel)))
    return failure();
  return nest;
}
