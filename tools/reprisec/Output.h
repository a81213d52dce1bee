//===- Output.h - Programs and objects as files -----------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_TOOLS_REPRISEC_OUTPUT_H
#define REPRISE_TOOLS_REPRISEC_OUTPUT_H

#include "Options.h"
#include "Targets.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/SourceMgr.h"

namespace reprise::driver {
/// Prints a message with the line that it is about; of a long one, as files
/// without line ends have, the part around the place. A handler of
/// `llvm::SourceMgr`.
void printMessage(const llvm::SMDiagnostic &message, void *context);

/// Refuses to put a program or an object where something else would be lost;
/// a symbolic link stands for the file that it names. A program needs the
/// runtime archive, too.
mlir::LogicalResult checkOutput(Options &options, bool isProgram);

/// Everything after the last phase of IR.
/// Writes the program, or the object that it is linked from. Either of the two
/// may be null.
/// \param chips  of `cuda`, oldest first.
int writeProgram(mlir::ModuleOp cpu, mlir::ModuleOp cuda,
                 const Options &options, llvm::ArrayRef<std::string> chips);

/// Writes what kernels take of each of `chips`.
int writeKernels(mlir::ModuleOp module, const Options &options,
                 llvm::ArrayRef<std::string> chips);

/// Writes the PTX or the machine code of `@device` for `chip`.
int writeDeviceCode(mlir::ModuleOp module, const Options &options,
                    const Goal &goal, llvm::StringRef chip);
} // namespace reprise::driver

#endif // REPRISE_TOOLS_REPRISEC_OUTPUT_H
