//===- RTKernelOps.cpp - What kernels do that is no loop nest ---*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Dialect/RT/RTOps.h"
#include "reprise/Support/ExpertRows.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::rt;

/// An operand or result and its name in ODS.
using Named = std::pair<StringRef, Value>;

static ShapedType getShaped(Value value) {
  return cast<ShapedType>(value.getType());
}

static bool isF32(Value value, int64_t rank) {
  ShapedType type = getShaped(value);
  return type.getElementType().isF32() && type.getRank() == rank;
}

/// What activations are made of.
static bool isF32OrBF16(ShapedType type) {
  return type.getElementType().isF32() || type.getElementType().isBF16();
}

//===----------------------------------------------------------------------===//
// rt.attention, rt.attention_backward
//===----------------------------------------------------------------------===//

/// What is read and written of each head.
template <typename OpTy>
static LogicalResult verifyHeads(OpTy op) {
  Value query = op.getQuery(), lse = op.getLse();
  ShapedType type = getShaped(query);
  if (!isF32OrBF16(type) || type.getRank() != 3) // C1
    return op.emitOpError(
               "needs 'query' to be [B, T, H*D] of f32 or bf16, but got ")
           << query.getType();
  ArrayRef<int64_t> shape = type.getShape();
  int64_t heads = op.getHeads();
  if (heads < 1 || shape[2] % heads != 0) // C3
    return op.emitOpError("needs a head count that divides the width, but got ")
           << heads << " heads and the width " << shape[2];
  int64_t keyHeads = op.getKvHeads() ? int64_t(*op.getKvHeads()) : heads;
  if (keyHeads < 1 || heads % keyHeads != 0) // C3
    return op.emitOpError("needs 'kv_heads' to divide the head count, but got ")
           << keyHeads << " and " << heads << " heads";
  ShapedType out = getShaped(op.getOut());
  int64_t outWidth = out.getRank() == 3 ? out.getDimSize(2) : 0;
  if (outWidth < 1 || outWidth % heads != 0) // C1
    return op.emitOpError("needs 'out' to have columns for ")
           << heads << " heads, but got " << Type(out);
  for (auto [name, value, width] :
       {std::tuple(StringRef("key"), op.getKey(), shape[2]),
        std::tuple(StringRef("value"), op.getValue(), outWidth),
        std::tuple(StringRef("out"), op.getOut(), outWidth)}) {
    int64_t columns = name == "out" ? width : width / heads * keyHeads;
    if (getShaped(value).getElementType() != type.getElementType() ||
        getShaped(value).getShape() !=
            ArrayRef<int64_t>{shape[0], shape[1], columns}) // C1
      return op.emitOpError("needs '")
             << name << "' to be [" << shape[0] << ", " << shape[1] << ", "
             << columns << "] of " << type.getElementType() << ", but got "
             << value.getType();
  }
  if (!isF32(lse, 3) || getShaped(lse).getShape() !=
                            ArrayRef<int64_t>{shape[0], heads, shape[1]}) // C2
    return op.emitOpError("needs 'lse' to be [")
           << shape[0] << ", " << heads << ", " << shape[1]
           << "] of f32, but got " << lse.getType();
  return success();
}

/// Which probabilities are dropped.
template <typename OpTy>
static LogicalResult verifyDropout(OpTy op) {
  ShapedType rng = getShaped(op.getRng());
  if (!rng.getElementType().isInteger(32) || rng.getNumElements() != 4) // C2
    return op.emitOpError("needs 'rng' to be 4 elements of i32, but got ")
           << Type(rng);
  double rate = op.getRate().convertToFloat();
  if (!(rate >= 0 && rate < 1)) // C4
    return op.emitOpError("needs a rate in [0, 1), but got ")
           << op.getRateAttr();
  if (int64_t(op.getStream()) < 0) // C4
    return op.emitOpError(
               "needs the position of a stream, at least 0, but got ")
           << int64_t(op.getStream());
  if (op.getRanks().has_value() != op.getCoordinate().has_value() ||
      int64_t(op.getRanks().value_or(1)) < 1 ||
      int64_t(op.getCoordinate().value_or(0)) < 0) // C4
    return op.emitOpError("needs 'ranks', at least 1, and the position of a "
                          "coordinate, at least 0, or neither");
  return success();
}

template <typename OpTy>
static LogicalResult verifyAttention(OpTy op) {
  return failure(failed(verifyHeads(op)) || failed(verifyDropout(op)));
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  for (auto [name, gradient, value] :
       {std::tuple("dout", getDout(), getOut()),
        std::tuple("dquery", getDquery(), getQuery()),
        std::tuple("dkey", getDkey(), getKey()),
        std::tuple("dvalue", getDvalue(), getValue())})
    if (gradient.getType() != value.getType()) // C1
      return emitOpError("needs '") << name << "' to be " << value.getType()
                                    << ", but got " << gradient.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// rt.scatter_add
//===----------------------------------------------------------------------===//

LogicalResult ScatterAddOp::verify() {
  if (!isF32(getSum(), 2)) // C1
    return emitOpError("needs 'sum' to be [V, C] of f32, but got ")
           << getSum().getType();
  if (getOut().getType() != getSum().getType()) // C1
    return emitOpError("needs 'out' of the type of 'sum', ")
           << getSum().getType() << ", but got " << getOut().getType();
  ShapedType rows = getShaped(getRows());
  int64_t width = getShaped(getSum()).getDimSize(1);
  if (getCoordinate() && (!getIds() || int64_t(*getCoordinate()) < 0)) // C3
    return emitOpError("needs ids, and the position of a coordinate, at least "
                       "0, for part of a table");
  if (!getIds()) {
    int64_t last = getShaped(getSum()).getDimSize(0);
    if (!isF32OrBF16(rows) || rows.getRank() != 3 ||
        rows.getShape().back() != width || rows.getDimSize(1) > last) // C3
      return emitOpError("needs 'rows' without ids to be [B, T, ")
             << width << "] of f32 or bf16 with T of at most " << last
             << ", but got " << Type(rows);
    return success();
  }
  ShapedType ids = getShaped(getIds());
  if (!ids.getElementType().isInteger(32)) // C2
    return emitOpError("needs 'ids' to be i32, but got ") << Type(ids);
  if (!isF32OrBF16(rows) || rows.getRank() < 1 ||
      rows.getShape().back() != width ||
      rows.getNumElements() != ids.getNumElements() * width) // C2
    return emitOpError("needs ")
           << ids.getNumElements() << " rows of " << width
           << " columns of f32 or bf16, but got " << Type(rows);
  return success();
}

//===----------------------------------------------------------------------===//
// Experts
//===----------------------------------------------------------------------===//

/// That `logits`, and what is like it, is f32 `[..., E]`, and `perSlot` `[...,
/// S]` with S of at most E: the first of these i32, others f32.
static LogicalResult verifyRouting(Operation *op, ArrayRef<Named> logits,
                                   ArrayRef<Named> perSlot) {
  ShapedType type = getShaped(logits.front().second);
  ShapedType ids = getShaped(perSlot.front().second);
  if (type.getRank() < 1 || !type.getElementType().isF32()) // C1
    return op->emitOpError("needs 'logits' to be f32 [..., E], but got ")
           << Type(type);
  for (auto [name, value] : logits)
    if (value.getType() != Type(type)) // C1
      return op->emitOpError("needs '") << name << "' to be " << Type(type)
                                        << ", but got " << value.getType();
  if (ids.getRank() != type.getRank() || !ids.getElementType().isInteger(32) ||
      ids.getShape().drop_back() != type.getShape().drop_back() ||
      ids.getShape().back() < 1 ||
      ids.getShape().back() > type.getShape().back()) // C1
    return op->emitOpError("needs 'ids' to be i32 [..., S] with S of at most ")
           << type.getShape().back() << ", but got " << Type(ids);
  for (auto [name, value] : perSlot.drop_front())
    if (getShaped(value).getShape() != ids.getShape() ||
        !getShaped(value).getElementType().isF32()) // C1
      return op->emitOpError("needs '")
             << name << "' to be f32 of the shape of 'ids', " << Type(ids)
             << ", but got " << value.getType();
  return success();
}

LogicalResult ChooseExpertsOp::verify() {
  if (failed(
          verifyRouting(*this, {{"logits", getLogits()}}, {{"ids", getIds()}})))
    return failure();
  int64_t experts = getShaped(getLogits()).getShape().back();
  if (getBias() && (!isF32(getBias(), 1) ||
                    getShaped(getBias()).getNumElements() != experts)) // C1
    return emitOpError("needs 'bias' to be f32 [")
           << experts << "], but got " << getBias().getType();
  if (!getGroups() && !getKeep() && !getByTwo())
    return success();
  int64_t groups = getGroups().value_or(0), keep = getKeep().value_or(0);
  int64_t slots = getShaped(getIds()).getShape().back();
  if (groups < 1 || experts % groups != 0 || keep < 1 || keep > groups ||
      slots > experts / groups * keep ||
      (getByTwo() && experts / groups < 2)) // C2
    return emitOpError("needs equal groups, of which those kept have experts "
                       "for all slots, but got ")
           << experts << " experts, " << groups << " groups, of which " << keep
           << " are kept, and " << slots << " slots";
  return success();
}

LogicalResult ExpertWeightsOp::verify() {
  return verifyRouting(*this, {{"logits", getLogits()}},
                       {{"ids", getIds()}, {"weights", getWeights()}});
}

LogicalResult ExpertWeightsBackwardOp::verify() {
  return verifyRouting(*this,
                       {{"logits", getLogits()}, {"dlogits", getDlogits()}},
                       {{"ids", getIds()}, {"dweights", getDweights()}});
}

LogicalResult SortRowsOp::verify() {
  ShapedType ids = getShaped(getIds()), order = getShaped(getOrder());
  ShapedType offsets = getShaped(getOffsets());
  for (Value value : {getIds(), getOrder(), getInverse(), getOffsets()})
    if (!getShaped(value).getElementType().isInteger(32)) // C1
      return emitOpError("needs values of i32, but got ") << value.getType();
  if (getInverse().getType() != Type(ids)) // C1
    return emitOpError("needs 'inverse' to be ")
           << Type(ids) << ", but got " << getInverse().getType();
  if (offsets.getRank() != 1 || offsets.getNumElements() < 2) // C1
    return emitOpError("needs 'offsets' of at least 2 elements, but got ")
           << Type(offsets);
  if (getCapacity() && *getCapacity() < 1) // C2
    return emitOpError("needs a capacity of at least 1, but got ")
           << *getCapacity();
  if (getWeights() &&
      (!getCapacity() || !getShaped(getWeights()).getElementType().isF32() ||
       getShaped(getWeights()).getNumElements() != ids.getNumElements())) // C3
    return emitOpError("needs 'weights' to be f32 with an element for each id, "
                       "and a capacity, but got ")
           << getWeights().getType();
  int64_t rows = getMostRows(ids.getNumElements(), offsets.getNumElements() - 1,
                             getCapacity());
  if (order.getRank() != 1 || order.getNumElements() != rows) // C1, C2
    return emitOpError("needs 'order' to be of ")
           << rows << " elements, but got " << Type(order);
  return success();
}

LogicalResult CountChoicesOp::verify() {
  ShapedType rows = getShaped(getRows()), ids = getShaped(getIds());
  int64_t counts = rows.getRank() == 2 ? rows.getDimSize(0) : 1;
  if (rows.getRank() < 1 || rows.getRank() > 2 ||
      !rows.getElementType().isF32() || !ids.getElementType().isInteger(32) ||
      ids.getNumElements() % counts != 0) // C1
    return emitOpError("needs 'rows' to be f32 [E] or [B, E], where B divides "
                       "the number of ids, which are i32, but got ")
           << Type(rows) << " and " << Type(ids);
  return success();
}

LogicalResult CountRowsOp::verify() {
  ShapedType rows = getShaped(getRows());
  if (rows.getRank() != 1 || !rows.getElementType().isF32() ||
      getOffsets().empty()) // C1
    return emitOpError("needs 'rows' to be f32 [E], and an operand at least, "
                       "but got ")
           << Type(rows) << " and " << getOffsets().size() << " operands";
  for (Value offsets : getOffsets())
    if (getShaped(offsets).getRank() != 1 ||
        !getShaped(offsets).getElementType().isInteger(32) ||
        getShaped(offsets).getNumElements() != rows.getNumElements() + 1) // C1
      return emitOpError("needs 'offsets' to be i32 [E + 1] with E = ")
             << rows.getNumElements() << ", but got " << offsets.getType();
  return success();
}

//===----------------------------------------------------------------------===//
// rt.block_sums
//===----------------------------------------------------------------------===//

LogicalResult BlockSumsOp::verify() {
  int64_t blocks = 0;
  for (Value input : getInputs())
    blocks += llvm::divideCeil(getShaped(input).getNumElements(), kBlock);
  if (getShaped(getOut()).getNumElements() != blocks) // C1
    return emitOpError("needs a result of ")
           << blocks << " elements, one for each block of " << kBlock
           << ", but got " << getOut().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Latent attention
//===----------------------------------------------------------------------===//

/// That all `values` are of one element type, f32 or bf16, and of one shape but
/// for their columns.
static LogicalResult verifyColumns(Operation *op, ArrayRef<Named> values) {
  ShapedType first = getShaped(values.front().second);
  for (auto [name, value] : values) {
    ShapedType type = getShaped(value);
    if (!isF32OrBF16(type) || type.getRank() < 1 ||
        type.getElementType() != first.getElementType() ||
        type.getShape().drop_back() != first.getShape().drop_back()) // C1
      return op->emitOpError("needs '")
             << name << "' to be f32 or bf16 of the rows of '"
             << values.front().first << "', " << Type(first) << ", but got "
             << value.getType();
  }
  return success();
}

static int64_t getColumns(Value value) {
  return getShaped(value).getShape().back();
}

static LogicalResult verifyParts(Operation *op, StringRef name, Value whole,
                                 Value left, Value right) {
  if (failed(
          verifyColumns(op, {{name, whole}, {"left", left}, {"right", right}})))
    return failure();
  if (getColumns(whole) != getColumns(left) + getColumns(right)) // C1
    return op->emitOpError("needs '")
           << name << "' to have " << getColumns(left) << " and "
           << getColumns(right) << " columns, but got " << getColumns(whole);
  return success();
}

LogicalResult SplitColumnsOp::verify() {
  return verifyParts(*this, "input", getInput(), getLeft(), getRight());
}

LogicalResult JoinColumnsOp::verify() {
  return verifyParts(*this, "out", getOut(), getLeft(), getRight());
}

static LogicalResult verifyLatentHeads(Operation *op, int64_t heads,
                                       ArrayRef<Named> values) {
  if (failed(verifyColumns(op, values)))
    return failure();
  int64_t input = getColumns(values[0].second);
  int64_t shared = getColumns(values[1].second);
  int64_t key = getColumns(values[2].second);
  int64_t value = getColumns(values[3].second);
  if (heads < 1 || input % heads != 0 || key % heads != 0 ||
      value % heads != 0 || input <= value ||
      input - value + heads * shared != key) // C1
    return op->emitOpError("needs columns of ")
           << heads << " heads, of which keys have " << shared
           << " in common, but got " << input << ", " << key << " of keys and "
           << value << " of values";
  return success();
}

LogicalResult LatentHeadsOp::verify() {
  return verifyLatentHeads(*this, getHeads(),
                           {{"input", getInput()},
                            {"shared", getShared()},
                            {"key", getKey()},
                            {"value", getValue()}});
}

LogicalResult LatentHeadsBackwardOp::verify() {
  return verifyLatentHeads(*this, getHeads(),
                           {{"dinput", getDinput()},
                            {"dshared", getDshared()},
                            {"dkey", getDkey()},
                            {"dvalue", getDvalue()}});
}
