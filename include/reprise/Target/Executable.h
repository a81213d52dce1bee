//===- Executable.h - From planned IR to a training binary ------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TARGET_EXECUTABLE_H
#define REPRISE_TARGET_EXECUTABLE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
class raw_pwrite_stream;
} // namespace llvm

namespace reprise::target {
/// Translates a module of the phase `llvm` (kernels in the LLVM dialect,
/// `@step` in buffer form, `rt.plan`) into an LLVM module: the kernels, the
/// tables of `RepriseModel` as constant data, and a `main` that hands them to
/// the runtime. Consumes the functions of `module`. Null, with a diagnostic, if
/// the module is not of that phase.
std::unique_ptr<llvm::Module> translateModel(mlir::ModuleOp module,
                                             llvm::LLVMContext &context);

/// Optimizes `module` for the processor `cpu` (a name LLVM knows) and writes an
/// object file. Functions that name a processor of their own keep it. 20 to
/// 30 ms for each kernel. Fails with a message on stderr for an unknown
/// processor.
llvm::LogicalResult emitObject(llvm::Module &module, llvm::StringRef cpu,
                               llvm::raw_pwrite_stream &os);

/// Links an object file with the runtime archive into an executable that needs
/// libc and libm alone, in process. Fails with the linker's messages on stderr.
llvm::LogicalResult linkExecutable(llvm::StringRef object,
                                   llvm::StringRef runtime,
                                   llvm::StringRef output);
} // namespace reprise::target

#endif // REPRISE_TARGET_EXECUTABLE_H
