//===- AttentionWarpGroup.cpp - MMAs of four warps together -----*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionGemms.h"
#include "WarpGroup.h"

using namespace mlir;
using namespace reprise;
using namespace reprise::cuda;

namespace {
class WarpGroupUnit : public MatrixUnit {
public:
  using MatrixUnit::MatrixUnit;

  bool isAsync() const override { return true; }
  Values finish(ValueRange values, int64_t later) const override {
    return waitForMmas(code, values, later);
  }
  Values gemm(Value own, Value tile, int64_t width,
              ValueRange kept) const override;
  Values addGemm(ValueRange sums, ValueRange weights,
                 Value tile) const override;
};
} // namespace

MatrixUnit::Values WarpGroupUnit::gemm(Value own, Value tile, int64_t width,
                                       ValueRange) const {
  Value a = describeMatrix(code, own), b = describeMatrix(code, tile);
  Values sums;
  fenceMmas(code);
  for (int64_t k = 0; k < width; k += 16) {
    // Sixteen terms are two vectors of every row of a panel.
    int64_t panel = k / kPanelColumns, within = 2 * (k % kPanelColumns);
    auto part = [&](Value matrix, int64_t rows) {
      return advanceMatrix(code, matrix,
                           panel * rows * kPanelRowBytes + within);
    };
    sums = beginMma(code, sums, part(a, division.ownRows()),
                    part(b, division.tileRows), division.tileRows,
                    /*byTerms=*/false);
  }
  commitMmas(code);
  return sums;
}

MatrixUnit::Values WarpGroupUnit::addGemm(ValueRange old, ValueRange weights,
                                          Value tile) const {
  Value b = describeMatrix(code, tile);
  Values sums(old), packed;
  for (size_t i = 0; i < weights.size(); i += 2)
    packed.push_back(pack(code, weights[i], weights[i + 1]));
  size_t count = sums.size();
  sums.append(packed);
  sums = fenceMmas(code, sums);
  packed.assign(sums.begin() + count, sums.end());
  sums.truncate(count);
  for (int64_t k = 0; k < division.tileRows; k += 16)
    for (int64_t c = 0; c < int64_t(2 * old.size()); c += kPanelColumns) {
      int64_t rows = c / kPanelColumns * division.tileRows + k;
      MutableArrayRef<Value> part(sums.data() + c / 2, kPanelColumns / 2);
      llvm::copy(beginMma(code, ValueRange(ArrayRef<Value>(part)),
                          ValueRange(packed).slice(k / 4, 4),
                          advanceMatrix(code, b, rows * kPanelRowBytes),
                          kPanelColumns, /*byTerms=*/true),
                 part.begin());
    }
  commitMmas(code);
  return sums;
}

std::unique_ptr<MatrixUnit>
cuda::createWarpGroupUnit(Warp &code, const AttentionShape &shape,
                          const Division &division) {
  return std::make_unique<WarpGroupUnit>(code, shape, division);
}
