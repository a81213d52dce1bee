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
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <string>
#include <vector>

namespace llvm {
class Module;
} // namespace llvm

namespace reprise::target {
struct DeviceImage;

/// A model for one target: kernels in the LLVM dialect (phase `llvm` for the
/// CPU, `nvvm` for GPUs), `@step` in buffer form, `rt.plan`.
struct CompiledModel {
  mlir::ModuleOp module;
  const DeviceImage *image = nullptr; ///< of GPUs
};

/// The bytes of an object file.
using ObjectFile = llvm::SmallVector<char, 0>;

/// Compiles models, one for each target, into object files: the kernels of the
/// CPU in parts, as many at a time as there are threads in the context; the
/// tables of each `RepriseModel` as constant data, images of the kernels of
/// GPUs likewise, and a `main` that hands them to the runtime. `cpu` is as for
/// `emitObject`. Consumes the functions of the modules. Fails, with a
/// diagnostic, if a module is not of its phase.
///
/// The same models give the same bytes, whatever the number of threads. 20 to
/// 30 ms of a processor for each kernel.
llvm::FailureOr<std::vector<ObjectFile>>
compileModels(llvm::ArrayRef<CompiledModel> models, llvm::StringRef cpu);

/// Optimizes `module` for the processor `cpu` (a name LLVM knows, 64-bit x86)
/// and makes an object file of it. Functions that name a processor of their own
/// keep it. May run in several threads, each with a context of its own.
llvm::FailureOr<ObjectFile> emitObject(llvm::Module &module,
                                       llvm::StringRef cpu);

/// What is wrong unless `cpu` is a 64-bit x86 processor that LLVM knows; or
/// empty.
std::string checkProcessor(llvm::StringRef cpu);

/// The name of the processor `cpu`, which may be `native`.
std::string resolveCPU(llvm::StringRef cpu);

/// Whether a processor that LLVM knows has 32 registers of 16 lanes of f32,
/// with all that x86-64-v4 does on them.
bool hasWideRegisters(llvm::StringRef cpu);

/// Links object files into one, in process, for a linker to go on with. Fails
/// with the linker's messages on stderr.
llvm::LogicalResult linkObject(llvm::ArrayRef<ObjectFile> objects,
                               llvm::StringRef output);

/// Links object files with the runtime archive into an executable that needs
/// libc and libm alone, in process. Fails with the linker's messages on stderr.
llvm::LogicalResult linkExecutable(llvm::ArrayRef<ObjectFile> objects,
                                   llvm::StringRef runtime,
                                   llvm::StringRef output);
} // namespace reprise::target

#endif // REPRISE_TARGET_EXECUTABLE_H
