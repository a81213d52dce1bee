//===- ExpertMove.h - What moves rows to their experts ----------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REMAT_EXPERTMOVE_H
#define REPRISE_LIB_REMAT_EXPERTMOVE_H

#include "reprise/Dialect/NN/Axes.h"

namespace reprise::remat {
/// Whether `op` moves rows between ranks that have other experts.
inline bool isExpertMove(mlir::Operation *op) {
  auto axis = op->getAttrOfType<mlir::StringAttr>("axis");
  return axis && axis.getValue() == nn::kExpertAxis && op->getNumResults() == 1;
}
} // namespace reprise::remat

#endif // REPRISE_LIB_REMAT_EXPERTMOVE_H
