//===- RunPasses.h - LLVM's own optimizations -------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef REPRISE_CODEGEN_COMMON_RUNPASSES_H
#define REPRISE_CODEGEN_COMMON_RUNPASSES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Passes/PassBuilder.h"

namespace reprise::codegen {
/// What is run on kernels for the CPU, in the words of `opt`. Kernels are
/// written as they are to run, vectorised, blocked and inlined, so the
/// optimizations that look for more than that are left out: they take as long
/// as all else together, and gain nothing. What is left to do is what emitting
/// from smaller pieces leaves behind. (That one pass over the instructions does
/// not find all is no error.)
inline constexpr llvm::StringLiteral kKernelPasses =
    "function(sroa,early-cse<memssa>,simplifycfg,"
    "instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),gvn,"
    "loop(loop-unroll-full),instcombine<no-verify-fixpoint>,simplifycfg)";

/// Runs `passes`, in the words of LLVM's `opt`, such as "default<O3>", on
/// `module`. Fails if there are no such passes.
llvm::Error runPasses(llvm::Module &module, llvm::TargetMachine &machine,
                      llvm::StringRef passes,
                      const llvm::PipelineTuningOptions &tuning = {});
} // namespace reprise::codegen

#endif // REPRISE_CODEGEN_COMMON_RUNPASSES_H
