//===- Registration.h - All dialects and passes -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_PIPELINES_REGISTRATION_H
#define REPRISE_PIPELINES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace reprise {
/// Reprise's dialects, and those of MLIR that its phases are written in.
void registerDialects(mlir::DialectRegistry &registry);

/// Reprise's passes, and those of MLIR that are of use between them.
void registerPasses();
} // namespace reprise

#endif // REPRISE_PIPELINES_REGISTRATION_H
