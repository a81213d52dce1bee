//===- CopyModule.h - Modules in another context ----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A what-if compile runs in a context of its own: remarks and diagnostics of
// its passes are of plans that nobody asked for, MLIR cannot set a context's
// engine of remarks aside, and threads that compile at one time share no
// context. An op is not cloned into another context, so it goes as bytecode.
// Where the context stays the same, `module.clone()` is the copy.
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_SUPPORT_COPYMODULE_H
#define REPRISE_SUPPORT_COPYMODULE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace reprise {

/// The bytecode of `module`, for `readModule` in any number of threads.
mlir::FailureOr<std::string> writeModule(mlir::ModuleOp module);

/// The module in `bytes`, of writeModule in this process; null if they are
/// none. It is not verified again. Its locations, which are for messages, are
/// unknown.
mlir::OwningOpRef<mlir::ModuleOp> readModule(llvm::StringRef bytes,
                                             mlir::MLIRContext &context);

/// Both: `module` in `context`, which knows its dialects.
mlir::OwningOpRef<mlir::ModuleOp> copyInto(mlir::MLIRContext &context,
                                           mlir::ModuleOp module);

} // namespace reprise

#endif // REPRISE_SUPPORT_COPYMODULE_H
