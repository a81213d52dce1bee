//===- ColumnMoves.cpp - Columns of latent attention ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/ColumnMoves.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;

using Rows = ColumnMove::Rows;

static int64_t getColumns(Value value) {
  return cast<ShapedType>(value.getType()).getShape().back();
}

ColumnMoves::ColumnMoves(Value value, int64_t cols)
    : element(cast<ShapedType>(value.getType()).getElementType()),
      positions(cast<ShapedType>(value.getType()).getNumElements() / cols) {}

ColumnMoves::ColumnMoves(rt::SplitColumnsOp op)
    : ColumnMoves(op.getInput(), getColumns(op.getInput())) {
  int64_t left = getColumns(op.getLeft()), right = getColumns(op.getRight());
  moves = {{Rows::Each, {0, left + right}, {0, left}, left},
           {Rows::Each, {0, left + right, left}, {1, right}, right}};
}

ColumnMoves::ColumnMoves(rt::JoinColumnsOp op)
    : ColumnMoves(op.getOut(), getColumns(op.getOut())) {
  int64_t left = getColumns(op.getLeft()), right = getColumns(op.getRight());
  moves = {{Rows::Each, {0, left}, {0, left + right}, left},
           {Rows::Each, {1, right}, {0, left + right, left}, right}};
}

ColumnMoves::ColumnMoves(rt::LatentHeadsOp op)
    : ColumnMoves(op.getInput(), getColumns(op.getInput())) {
  heads = op.getHeads();
  int64_t shared = getColumns(op.getShared());
  int64_t key = getColumns(op.getKey()) / heads, own = key - shared;
  int64_t value = getColumns(op.getValue()) / heads;
  moves = {{Rows::Heads, {0, own + value}, {0, key}, own},
           {Rows::Repeat, {1, shared}, {0, key, own}, shared},
           {Rows::Heads, {0, own + value, own}, {1, value}, value}};
}

ColumnMoves::ColumnMoves(rt::LatentHeadsBackwardOp op)
    : ColumnMoves(op.getDinput(), getColumns(op.getDinput())) {
  heads = op.getHeads();
  int64_t shared = getColumns(op.getDshared());
  int64_t key = getColumns(op.getDkey()) / heads, own = key - shared;
  int64_t value = getColumns(op.getDvalue()) / heads;
  moves = {{Rows::Heads, {0, key}, {0, own + value}, own},
           {Rows::Heads, {1, value}, {0, own + value, own}, value},
           {Rows::Sum, {0, key, own}, {1, shared}, shared}};
}
