//===- RunPasses.h - LLVM's own optimizations -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_RUNPASSES_H
#define REPRISE_CODEGEN_COMMON_RUNPASSES_H

#include "llvm/Passes/PassBuilder.h"

namespace reprise::codegen {
/// Runs `passes`, in the words of LLVM's `opt`, such as "default<O3>", on
/// `module`. Fails if there are no such passes.
llvm::Error runPasses(llvm::Module &module, llvm::TargetMachine &machine,
                      llvm::StringRef passes,
                      const llvm::PipelineTuningOptions &tuning = {});
} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_RUNPASSES_H
