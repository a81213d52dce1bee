//===- OnlyStages.h - Some stages of a pipeline -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_DIALECT_PIPE_ONLYSTAGES_H
#define REPRISE_DIALECT_PIPE_ONLYSTAGES_H

#include "mlir/IR/BuiltinAttributes.h"

namespace reprise::pipe {

/// On a module, `array<i64: …>`: the stages that become programs, by their
/// numbers; missing: all. What is asked of a what-if compile.
inline constexpr llvm::StringLiteral kOnlyStagesAttr = "pipe.only_stages";

} // namespace reprise::pipe

#endif // REPRISE_DIALECT_PIPE_ONLYSTAGES_H
