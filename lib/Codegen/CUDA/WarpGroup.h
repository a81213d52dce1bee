//===- WarpGroup.h - MMAs of four warps together ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What sm_90a has beside mma.sync: four warps multiply 64 rows by n columns at
// once and go on while that is under way (wgmma). The right factor is read from
// shared memory once for all four, and the left one, too, or it is in
// registers. Warp i has rows 16 i .. 16 i + 15, where Warp.h says.
//
// A matrix in shared memory is made of panels of 64 columns of bf16, each row
// by row, 128 bytes a row. Of these the eight vectors of 16 bytes change
// places: vector v of row r is where v ^ r % 8 would be, so that neither rows
// nor columns of vectors meet in a bank. Which row it is, is read from the
// address: panels begin at multiples of 8 rows, 1024 bytes.
//
// Source: PTX ISA 8.0, section 9.7.14, asynchronous warpgroup level matrix
// instructions: swizzling of 128 bytes, matrix descriptors.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_CODEGEN_CUDA_WARPGROUP_H
#define REPRISE_LIB_CODEGEN_CUDA_WARPGROUP_H

#include "Warp.h"

namespace reprise::cuda {

/// The one chip that has these MMAs.
constexpr llvm::StringLiteral kWarpGroupChip = "sm_90a";

constexpr int64_t kWarpGroup = 4;       ///< warps
constexpr int64_t kPanelColumns = 64;   ///< of bf16
constexpr int64_t kPanelRowBytes = 128; ///< of them
/// Of the beginning of a panel: vectors change places alike every 8 rows.
constexpr int64_t kPanelAlignment = 8 * kPanelRowBytes;

/// What the threads' own writes to shared memory and copies that have landed
/// are to MMAs that begin after the next barrier.
void showToMmas(Warp &code);

/// A matrix at `offset` of shared memory, in one panel, as a factor.
mlir::Value describeMatrix(Warp &code, mlir::Value offset);
/// The same matrix from `bytes` further on, where that is a multiple of 16.
mlir::Value advanceMatrix(Warp &code, mlir::Value matrix, int64_t bytes);

/// Before the first MMA that reads or adds to registers written since:
/// `values`, f32 or i32, are there when it begins.
Warp::Values fenceMmas(Warp &code, mlir::ValueRange values = {});
/// Begins sums + a b, or a b without `sums`: a has 64 rows of 16 terms, either
/// four registers as mma.sync has them or one description; b has 16 terms of
/// `columns` columns, term by term if `byTerms`, otherwise column by column.
/// What comes back are numbers only behind `waitForMmas`.
Warp::Values beginMma(Warp &code, mlir::ValueRange sums, mlir::ValueRange a,
                      mlir::Value b, int64_t columns, bool byTerms);
/// Ends the group of the MMAs that have begun since the last one.
void commitMmas(Warp &code);
/// Waits for all groups but the last `groups`, of which `values` are results.
Warp::Values waitForMmas(Warp &code, mlir::ValueRange values, int64_t groups);

} // namespace reprise::cuda

#endif // REPRISE_LIB_CODEGEN_CUDA_WARPGROUP_H
