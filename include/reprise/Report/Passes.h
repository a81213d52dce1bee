//===- Passes.h - Passes that print reports ---------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_REPORT_PASSES_H
#define REPRISE_REPORT_PASSES_H

#include "mlir/Pass/Pass.h"

namespace reprise::report {
#define GEN_PASS_DECL
#include "reprise/Report/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "reprise/Report/Passes.h.inc"
} // namespace reprise::report

#endif // REPRISE_REPORT_PASSES_H
