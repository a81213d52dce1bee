//===- Philox.h - Random words, lane by lane --------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_PHILOX_H
#define REPRISE_CODEGEN_COMMON_PHILOX_H

#include "reprise/Codegen/Common/Code.h"
#include <array>

namespace reprise::codegen {

/// What the random words of one op share, i32 each.
struct RandomStream {
  mlir::Value seedLow, seedHigh, step, microBatch, stream;

  /// Reads the four words at `rng` and id `stream` of the launch.
  static RandomStream load(Code &code, const Buffers &kernel, mlir::Value rng,
                           int64_t stream);
};

/// The four words of a block, or of the block in each lane: `reprisePhilox` for
/// the elements 4 * block .. 4 * block + 3.
std::array<mlir::Value, 4> emitPhilox(Code &code, const RandomStream &random,
                                      mlir::Value block);

/// The word of each of `elements`, a vector of integers or indices: a block for
/// each.
mlir::Value emitWords(Code &code, const RandomStream &random,
                      mlir::Value elements);

/// The words of a vector of elements from `first` on, a multiple of 4 as is the
/// number of lanes: each block is computed once, by scalar code.
mlir::Value emitWordsOfBlocks(Code &code, const RandomStream &random,
                              mlir::Value first);

/// With 16 lanes, the words of 64 elements from `first` on, a multiple of 4, as
/// four vectors: each block is computed once.
std::array<mlir::Value, 4>
emitWordsOfRun(Code &code, const RandomStream &random, mlir::Value first);

/// Dropout: keeps what meets a word of at least `threshold`, times `factor`.
struct Dropout {
  uint32_t threshold;
  float factor;

  explicit Dropout(double rate);
  bool isNone() const { return threshold == 0; }
  /// For a vector of words, `factor` or zero.
  mlir::Value emit(Code &code, mlir::Value words) const;
};

} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_PHILOX_H
