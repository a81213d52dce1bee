//===- Describe.h - What a program was compiled from ------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_RUNTIME_SHOW_DESCRIBE_H
#define REPRISE_RUNTIME_SHOW_DESCRIBE_H

#include "reprise/ABI/Model.h"

namespace reprise::runtime {

/// Prints, in a few lines, what the program of these models was compiled from
/// and by whom.
void printVersion(const RepriseModel *const *models, int numModels);

/// Prints all that it was compiled from as an object of JSON: `model`, `plan`,
/// `compiler`, `interface`, `budget_bytes` (null without a budget), the mesh
/// of its ranks and the bytes of stages, `config` as the hub's programs have
/// it, and the section `train` of the description.
void printDescription(const RepriseModel *const *models, int numModels);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_DESCRIBE_H
