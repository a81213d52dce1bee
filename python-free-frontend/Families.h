//===- Families.h - A builder for each family of models ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_FRONTEND_FAMILIES_H
#define REPRISE_FRONTEND_FAMILIES_H

#include "python-free-frontend/ForwardBuilder.h"

namespace reprise::frontend {

/// Each adds `@forward` to an empty module, and names the model.
void buildGPT2(mlir::ModuleOp module, const Description &description);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FAMILIES_H
