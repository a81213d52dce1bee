//===- LayerPattern.h - Megatron's pattern of layers ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_LAYERPATTERN_H
#define REPRISE_FRONTEND_LAYERPATTERN_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace reprise::frontend {

/// Which of `numLayers` layers have experts, as Megatron's `moe_layer_freq`
/// says it: N, those whose number from 0 on is a multiple of N; or a list with
/// a 0 or 1 for each layer, of lists that are repeated and joined, as in
/// `([0]*3+[1]*58)`. Nothing if `text` is neither, or of more layers than 2^16.
///
/// Source: Megatron Core 0.15, `arguments.py`, `moe_freq_type`.
std::optional<std::vector<bool>> parseLayerPattern(llvm::StringRef text,
                                                   int64_t numLayers);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_LAYERPATTERN_H
