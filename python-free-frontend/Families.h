//===- Families.h - What a description becomes ------------------*- C++ -*-===//
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

/// Adds `@forward` to an empty module, of the blocks that the family has.
void buildForward(mlir::ModuleOp module, const Description &description);

/// Marks the parameters of `@forward` that `train.frozen` names. Fails, with a
/// diagnostic, if a pattern names none or nothing is left to train.
llvm::LogicalResult freezeParameters(mlir::func::FuncOp function,
                                     const Description &description);

/// The text of the `config.json` that goes with weights of the model.
std::string writeHubConfig(const Description &description);

/// The section `train` as JSON: each key that has a value, in alphabetical
/// order. As JSON is YAML, a description may have it as it is.
std::string writeTrainJson(const Description &description);

} // namespace reprise::frontend

#endif // REPRISE_FRONTEND_FAMILIES_H
