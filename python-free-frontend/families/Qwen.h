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

/// Keys of their `config.json` that change the model and are not built.
/// (`sliding_window` is the size of a window that `use_sliding_window` turns
/// on.)
inline constexpr RefusedKey kRefusedOfQwen[] = {
    {"partial_rotary_factor", "1.0"}, {"use_mrope"}};

} // namespace reprise::frontend

#endif // REPRISE_PYTHON_FREE_FRONTEND_FAMILIES_QWEN_H
