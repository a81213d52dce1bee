//===- LaunchName.h - What launches are called ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `rt.name` is the scope of the op that a launch or a GEMM is named after, and
// behind that what it does there:
//
//   layer3.mlp.u                    the op
//   layer3.mlp.u@replay             its replay
//   layer3.mlp.u.backward           its gradient
//   layer3.mlp.u.backward_weight    one of several gradients
//
// Names are for people, reports and plans; nothing that is computed depends on
// them.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_RT_LAUNCHNAME_H
#define REPRISE_DIALECT_RT_LAUNCHNAME_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <string>

namespace reprise::rt {
inline constexpr llvm::StringLiteral kReplayEnd = "@replay";
inline constexpr llvm::StringLiteral kGradient = "backward";
inline constexpr llvm::StringLiteral kWeightGradient = "backward_weight";
inline constexpr llvm::StringLiteral kBiasGradient = "backward_bias";

/// Of what is in `scope`, "layer3.mlp.u".
inline std::string nameReplay(llvm::StringRef scope) {
  return (scope + kReplayEnd).str();
}

/// Of the gradient `which`: a word that begins with `kGradient`.
inline std::string nameGradient(llvm::StringRef scope, llvm::StringRef which) {
  return (scope + "." + which).str();
}

/// Whether `name` is that of the gradient of a weight, which only the optimizer
/// reads.
inline bool isOfWeightGradient(llvm::StringRef name) {
  return name.contains(("." + kWeightGradient).str());
}

/// The layer that `name` is in; -1 if it is in none.
inline int64_t getLayer(llvm::StringRef name) {
  int64_t layer = -1;
  llvm::StringRef first = name.split('.').first;
  bool isLayer = first.consume_front("layer") && !first.getAsInteger(10, layer);
  return isLayer ? layer : -1;
}
} // namespace reprise::rt

#endif // REPRISE_DIALECT_RT_LAUNCHNAME_H
