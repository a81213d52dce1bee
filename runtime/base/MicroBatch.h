//===- MicroBatch.h - Where inputs are written ------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_BASE_MICROBATCH_H
#define REPRISE_RUNTIME_BASE_MICROBATCH_H

#include <cstdint>

namespace reprise::runtime {

/// Where the inputs of a micro-batch are: see `tokens`, `targets` and `rng` of
/// RepriseModel.
struct MicroBatch {
  int32_t *tokens, *targets;
  uint32_t *rng; ///< 4 words.
};

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_BASE_MICROBATCH_H
