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
struct DeviceImage;

/// A model for one target: kernels in the LLVM dialect (phase `llvm` for the
/// CPU, `nvvm` for GPUs), `@step` in buffer form, `rt.plan`.
struct CompiledModel {
  mlir::ModuleOp module;
  const DeviceImage *image = nullptr; ///< of GPUs
};

/// Translates models, one for each target, into an LLVM module: the kernels of
/// the CPU, the tables of each `RepriseModel` as constant data, images of the
/// kernels of GPUs likewise, and a `main` that hands them to the runtime.
/// Consumes the functions of the modules. Null, with a diagnostic, if a module
/// is not of its phase.
std::unique_ptr<llvm::Module>
translateModels(llvm::ArrayRef<CompiledModel> models,
                llvm::LLVMContext &context);

/// Optimizes `module` for the processor `cpu` (a name LLVM knows) and writes an
/// object file. Functions that name a processor of their own keep it. 20 to
/// 30 ms for each kernel. Fails with a message on stderr for an unknown
/// processor.
llvm::LogicalResult emitObject(llvm::Module &module, llvm::StringRef cpu,
                               llvm::raw_pwrite_stream &os);

/// The name of the processor `cpu`, which may be `native`.
std::string resolveCPU(llvm::StringRef cpu);

/// Whether a processor that LLVM knows has 32 registers of 16 lanes of f32.
bool hasWideRegisters(llvm::StringRef cpu);

/// Links an object file with the runtime archive into an executable that needs
/// libc and libm alone, in process. Fails with the linker's messages on stderr.
llvm::LogicalResult linkExecutable(llvm::StringRef object,
                                   llvm::StringRef runtime,
                                   llvm::StringRef output);
} // namespace reprise::target

#endif // REPRISE_TARGET_EXECUTABLE_H
