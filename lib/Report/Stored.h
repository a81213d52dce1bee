//===- Stored.h - What backward reads of a layer ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_LIB_REPORT_STORED_H
#define REPRISE_LIB_REPORT_STORED_H

#include "reprise/Report/Megatron.h"
#include <string_view>

namespace reprise::report::megatron {
/// A tensor that Megatron keeps for backward, or drops and makes again.
struct Tensor {
  std::string_view name;
  int64_t bytes;          ///< on one rank
  bool isChoice;          ///< of routing, which no replay repeats
  std::string_view label; ///< of recompute_modules that drops it, or empty
  std::string_view other; ///< another that does, whose region is inside
  std::string_view only;  ///< the one with which alone it is there
};

/// Those of a layer, its input first. Each stands where the first op of the
/// forward pass stands that keeps it.
std::vector<Tensor> getTensors(const LayerShape &shape,
                               const Parallelism &parallelism);

inline int64_t getKeyHeads(const LayerShape &shape) {
  return shape.keyHeads ? shape.keyHeads : shape.heads;
}
} // namespace reprise::report::megatron

#endif // REPRISE_LIB_REPORT_STORED_H
