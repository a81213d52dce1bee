//===- AttentionGemms.cpp - The GEMMs of a tile -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGemms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::codegen;
using namespace reprise::codegen::attention;

std::unique_ptr<MatrixUnit> MatrixUnit::create(Code &code,
                                               const AttentionShape &shape,
                                               const Version &version) {
  return version.amx ? createTileUnit(code, shape)
                     : createVectorUnit(code, shape, version.avx512);
}

void MatrixUnit::fetch(ArrayRef<Soon> soon, Value row) const {
  auto emit = [&](const Soon &rows) {
    forTileRows(row, [&](Value each) { fetchRow(code, shape, rows, each); });
  };
  Value isLeft = arith::CmpIOp::create(code, arith::CmpIPredicate::slt, row,
                                       code.i64(shape.block));
  code.when(isLeft, [&] {
    for (const Soon &rows : soon)
      if (rows.when)
        code.when(rows.when, [&] { emit(rows); });
      else
        emit(rows);
  });
}

void MatrixUnit::scores(const Heads &heads, Value keys, Value queriesT,
                        Value to, Value ahead, ArrayRef<Soon> soon) const {
  const int64_t block = shape.block;
  Value zero = code.i64(0);
  // Keys up to the last of 16 queries.
  auto seenFrom = [&](Value column) {
    return code.min(code.add(code.add(column, ahead), kLanes), code.i64(block));
  };
  auto allTerms = [&](Value, Value) {
    return std::pair(zero,
                     code.i64(shape.hasBF16x2 ? 2 * heads.words : heads.width));
  };
  Gemm gemm = {{to, block, block / kLanes},
               {keys, heads.words, 1, ahead ? 0 : heads.words},
               {queriesT, block, block / kLanes},
               /*rowsOf=*/{},
               allTerms,
               Old::None,
               /*factors=*/{},
               soon};
  if (ahead)
    gemm.rowsOf = seenFrom;
  multiply(gemm);
}

void MatrixUnit::weighKeys(const Heads &heads, Value sums, Value tile,
                           Value rows, Value ahead, Old old, Value factors,
                           ArrayRef<Soon> soon, Value isNew) const {
  int64_t padded = heads.padded;
  Value zero = code.i64(0);
  // Keys up to the last of the queries.
  auto seenBy = [&](Value, Value end) {
    if (!ahead)
      return std::pair(zero, code.i64(shape.block));
    return std::pair(zero,
                     code.min(code.add(end, ahead), code.i64(shape.block)));
  };
  multiply({{sums, padded, padded / kLanes, isNew},
            termsOfKeys(tile, ahead),
            {rows, padded, padded / kLanes},
            /*rowsOf=*/{},
            seenBy,
            old,
            factors,
            soon});
}

void MatrixUnit::weighQueries(const Heads &heads, Value sums, Value tile,
                              Value rows, Value ahead, Old old,
                              ArrayRef<Soon> soon) const {
  int64_t padded = heads.padded, block = shape.block;
  Value zero = code.i64(0), all = code.i64(block);
  // Queries from the first of the keys on.
  auto seeing = [&](Value begin, Value) -> std::pair<Value, Value> {
    if (!ahead)
      return {zero, all};
    return {arith::MaxSIOp::create(code, code.sub(begin, ahead), zero), all};
  };
  multiply({{sums, padded, padded / kLanes},
            {tile, block, 1, ahead ? 0 : block / 2},
            {rows, padded, padded / kLanes},
            /*rowsOf=*/{},
            seeing,
            old,
            /*factors=*/{},
            soon});
}
