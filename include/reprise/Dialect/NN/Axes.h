//===- Axes.h - The axes that a mesh can have -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_NN_AXES_H
#define REPRISE_DIALECT_NN_AXES_H

#include "reprise/Dialect/NN/NNOps.h"

namespace reprise::nn {
/// Parts of the axis `dp`, or of `dp` and `tp` together: ranks with other
/// experts, and ranks with the same ones.
inline constexpr llvm::StringLiteral kExpertAxis = "ep";
inline constexpr llvm::StringLiteral kExpertCopiesAxis = "ep_copies";

/// All axes.
inline constexpr llvm::StringLiteral kMeshAxes[] = {
    kPipeAxis,       kDataAxis,   kTensorAxis,      kHeadsAxis,
    kHeadCopiesAxis, kExpertAxis, kExpertCopiesAxis};
/// Those along which ranks can have parts of a parameter.
inline constexpr llvm::StringLiteral kCutAxes[] = {kTensorAxis, kHeadsAxis,
                                                   kExpertAxis};
/// How ranks have parts of a parameter: along none or one of `kCutAxes`, in
/// their order, or along `tp` and `ep`, as of some experts a part of each.
/// `nn.gradient_counts` has a number for each kind.
enum class CutKind { None, Tensor, Heads, Expert, TensorOfExpert };
inline constexpr int kNumCutKinds = int(CutKind::TensorOfExpert) + 1;

/// The axes of `kind`.
llvm::ArrayRef<llvm::StringLiteral> getAxes(CutKind kind);
/// How ranks have parts of what `layout`, which may be null, is of.
CutKind getCutKind(mlir::Operation *module, LayoutAttr layout);

/// Of the ranks with samples of their own, the axis of those that have the same
/// of what ranks along `cutAxis` have parts of: `dp`, or the part of it along
/// which ranks have the same experts.
llvm::StringRef getSamplesAxis(llvm::StringRef cutAxis);
/// The same of what `layout`, which may be null, is of.
llvm::StringRef getSamplesAxis(LayoutAttr layout);
} // namespace reprise::nn

#endif // REPRISE_DIALECT_NN_AXES_H
