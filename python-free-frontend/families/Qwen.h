//===- Qwen.h - What the families of Qwen share -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PYTHON_FREE_FRONTEND_FAMILIES_QWEN_H
#define REPRISE_PYTHON_FREE_FRONTEND_FAMILIES_QWEN_H

#include "python-free-frontend/Family.h"

namespace reprise::frontend {

/// Keys of their `config.json` that classes without a key for it do not read:
/// queries, keys and values have biases, and nothing else has.
inline constexpr llvm::StringLiteral kIgnoredOfQwen2[] = {"attention_bias"};

} // namespace reprise::frontend

#endif // REPRISE_PYTHON_FREE_FRONTEND_FAMILIES_QWEN_H
