//===- AttentionGemms.h - The GEMMs of a block ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GEMMs of the own rows of a block by the rows of a tile. bf16 is multiplied
// by mma.sync or by the MMAs of WarpGroup.h, with sums in f32, and f32 by
// fused multiply-adds; all leave their results where Warp.h says. A further
// unit is a class here and a line of `MatrixUnit::create`.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_ATTENTIONGEMMS_H
#define REPRISE_LIB_CODEGEN_CUDA_ATTENTIONGEMMS_H

#include "AttentionTiles.h"
#include <memory>

namespace reprise::cuda {

class MatrixUnit {
public:
  using Values = Warp::Values;

  /// That of the division.
  static std::unique_ptr<MatrixUnit>
  create(Warp &code, const AttentionShape &shape, const Division &division);
  MatrixUnit(Warp &code, const AttentionShape &shape, const Division &division)
      : code(code), shape(shape), division(division), layout(shape, division) {}
  virtual ~MatrixUnit() = default;

  /// Whether GEMMs are under way when a function comes back: their numbers
  /// come from `finish`. Others are there at once.
  virtual bool isAsync() const { return false; }
  /// Waits for GEMMs but the last `later`, of which `values` are results.
  virtual Values finish(mlir::ValueRange values, int64_t later = 0) const {
    return Values(values);
  }
  /// What `gemm` needs of own rows again and again, to keep.
  virtual Values rowsToKeep(mlir::Value own, int64_t width) const { return {}; }
  /// own[r] . tile[c] for the rows of this warp and the rows of the tile, all
  /// of `width` columns.
  virtual Values gemm(mlir::Value own, mlir::Value tile, int64_t width,
                      mlir::ValueRange kept = {}) const = 0;
  /// sums[r] += sum over c of weights[r][c] tile[c].
  virtual Values addGemm(mlir::ValueRange sums, mlir::ValueRange weights,
                         mlir::Value tile) const = 0;
  /// As many zeros as `addGemm` has sums of tiles with `width` columns.
  Values zeros(int64_t width) const {
    return Values(shape.padded(width) / 2, code.f32(0));
  }

protected:
  Warp &code;
  const AttentionShape &shape;
  const Division &division;
  const SharedLayout layout;
};

std::unique_ptr<MatrixUnit> createNumberUnit(Warp &code,
                                             const AttentionShape &shape,
                                             const Division &division);
std::unique_ptr<MatrixUnit> createWarpUnit(Warp &code,
                                           const AttentionShape &shape,
                                           const Division &division);
std::unique_ptr<MatrixUnit> createWarpGroupUnit(Warp &code,
                                                const AttentionShape &shape,
                                                const Division &division);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_ATTENTIONGEMMS_H
