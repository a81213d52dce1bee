//===- NNLatentOps.cpp - Multi-head latent attention ----------------------===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Verifiers, costs and derivatives of what copies columns.
//
//===----------------------------------------------------------------------===//

#include "Verify.h"
#include "reprise/Dialect/NN/NNOps.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::nn;

//===----------------------------------------------------------------------===//
// Columns
//===----------------------------------------------------------------------===//

/// That `whole` has the columns of `left` and `right` side by side.
static LogicalResult verifyColumns(Operation *op, StringRef name, Value whole,
                                   Value left, Value right) {
  Dims dims(op);
  if (failed(dims.match({{name, whole, ".C"},
                         {"left", left, ".L"},
                         {"right", right, ".R"}}))) // C2
    return failure();
  if (dims['C'] != dims['L'] + dims['R']) // C2
    return op->emitOpError("needs '")
           << name << "' to have the columns of 'left' and 'right', "
           << dims['L'] << " and " << dims['R'] << ", but got " << dims['C'];
  return success();
}

LogicalResult SplitColumnsOp::verify() {
  return verifyColumns(*this, "input", getInput(), getLeft(), getRight());
}

int64_t SplitColumnsOp::getFlops() { return 0; }

LogicalResult JoinColumnsOp::verify() {
  return verifyColumns(*this, "out", getOut(), getLeft(), getRight());
}

int64_t JoinColumnsOp::getFlops() { return 0; }

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

/// Of heads: `input` has N + V columns, `key` N + R, `value` V, and `shared` R
/// of all.
static LogicalResult verifyLatentHeads(Operation *op, int64_t heads,
                                       Shaped input, Shaped shared, Shaped key,
                                       Shaped value) {
  Dims dims(op);
  if (failed(dims.match({input, shared, key, value}))) // C2
    return failure();
  int64_t inputs = dims['I'], keys = dims['K'], values = dims['Y'];
  for (auto [name, size] :
       {std::pair(input.name, inputs), std::pair(key.name, keys),
        std::pair(value.name, values)})
    if (heads < 1 || size % heads != 0) // C2
      return op->emitOpError("needs a head count that divides the width, but "
                             "got ")
             << heads << " heads and the width " << size << " of '" << name
             << "'";
  int64_t own = inputs / heads - values / heads, all = keys / heads;
  if (own < 1 || own + dims['R'] != all) // C2, C3
    return op->emitOpError("needs a head of '")
           << input.name << "' to have a value's " << values / heads
           << " columns and those of its key that are not the " << dims['R']
           << " shared ones, " << all - dims['R'] << ", but got "
           << inputs / heads;
  return success();
}

LogicalResult LatentHeadsOp::verify() {
  return verifyLatentHeads(*this, getHeads(), {"input", getInput(), ".I"},
                           {"shared", getShared(), ".R"},
                           {"key", getKey(), ".K"},
                           {"value", getValue(), ".Y"});
}

int64_t LatentHeadsOp::getFlops() { return 0; }

LogicalResult LatentHeadsBackwardOp::verify() {
  return verifyLatentHeads(*this, getHeads(), {"dinput", getDinput(), ".I"},
                           {"dshared", getDshared(), ".R"},
                           {"dkey", getDkey(), ".K"},
                           {"dvalue", getDvalue(), ".Y"});
}

/// An addition for each head but the first, of the columns that all share.
int64_t LatentHeadsBackwardOp::getFlops() {
  return multiply({countElements(getDshared()), int64_t(getHeads()) - 1});
}

//===----------------------------------------------------------------------===//
// Derivatives
//===----------------------------------------------------------------------===//

/// Of an op with two results, both of which have to have a gradient: what
/// splits a value that is half unused has no use.
static LogicalResult needBoth(Operation *op, ArrayRef<Value> cotangents) {
  if (cotangents[0] && cotangents[1])
    return success();
  return op->emitOpError("needs both results to be of use to have a "
                         "derivative, but got one alone");
}

LogicalResult SplitColumnsOp::buildVjp(OpBuilder &builder,
                                       ArrayRef<Value> cotangents,
                                       ArrayRef<bool> needed,
                                       MutableArrayRef<Value> gradients) {
  if (failed(needBoth(*this, cotangents)))
    return failure();
  if (needed[0])
    gradients[0] = JoinColumnsOp::create(
        builder, getLoc(), getInput().getType(), cotangents[0], cotangents[1]);
  return success();
}

LogicalResult JoinColumnsOp::buildVjp(OpBuilder &builder,
                                      ArrayRef<Value> cotangents,
                                      ArrayRef<bool> needed,
                                      MutableArrayRef<Value> gradients) {
  if (!needed[0] && !needed[1])
    return success();
  auto split = SplitColumnsOp::create(
      builder, getLoc(), TypeRange{getLeft().getType(), getRight().getType()},
      cotangents[0]);
  for (unsigned index : {0u, 1u})
    if (needed[index])
      gradients[index] = split.getResult(index);
  return success();
}

LogicalResult LatentHeadsOp::buildVjp(OpBuilder &builder,
                                      ArrayRef<Value> cotangents,
                                      ArrayRef<bool> needed,
                                      MutableArrayRef<Value> gradients) {
  if (failed(needBoth(*this, cotangents)))
    return failure();
  if (!needed[0] && !needed[1])
    return success();
  auto backward = LatentHeadsBackwardOp::create(
      builder, getLoc(), TypeRange{getInput().getType(), getShared().getType()},
      cotangents[0], cotangents[1], getHeadsAttr());
  for (unsigned index : {0u, 1u})
    if (needed[index])
      gradients[index] = backward.getResult(index);
  return success();
}
