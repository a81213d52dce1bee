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

/// Prints, in a few lines, what the program was compiled from and by whom.
void printVersion(const RepriseModel &model);

/// Prints all that it was compiled from as an object of JSON: `model`, `plan`,
/// `compiler`, `interface`, `budget_bytes` (null without a budget), `config` as
/// the hub's programs have it, and the section `train` of the description.
void printDescription(const RepriseModel &model);

} // namespace reprise::runtime

#endif // REPRISE_RUNTIME_SHOW_DESCRIBE_H
