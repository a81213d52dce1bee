//===- EmitObject.cpp - Machine code ----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Target/Executable.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

/// A description of x86-64 Linux and of the processor `cpu`; null after a
/// message.
static std::unique_ptr<TargetMachine> createMachine(StringRef cpu) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target) {
    WithColor::error() << error << "\n";
    return nullptr;
  }
  std::unique_ptr<MCSubtargetInfo> known(
      target->createMCSubtargetInfo(triple, /*CPU=*/"", /*Features=*/""));
  if (!known->isCPUStringValid(cpu)) {
    WithColor::error() << "needs a processor that LLVM knows, such as "
                          "x86-64-v3, but got '"
                       << cpu << "'\n";
    return nullptr;
  }
  std::unique_ptr<MCSubtargetInfo> processor(
      target->createMCSubtargetInfo(triple, cpu, /*Features=*/""));
  if (!processor->checkFeatures("+64bit")) {
    WithColor::error() << "needs a 64-bit x86 processor, but got '" << cpu
                       << "'\n";
    return nullptr;
  }
  TargetOptions options;
  options.FunctionSections = options.DataSections = true;
  // A product and a sum are contracted only where a kernel says so.
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, cpu, /*Features=*/"", options, Reloc::PIC_));
}

/// Kernels are written as they are to run, vectorised, blocked and inlined, so
/// the optimizations that look for more than that are left out: they take as
/// long as all else together, and gain nothing. What is left to do is what
/// emitting from smaller pieces leaves behind. (That one pass over the
/// instructions does not find all is no error.)
static constexpr StringLiteral kCleanUp =
    "function(sroa,early-cse<memssa>,simplifycfg,"
    "instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),gvn,"
    "loop(loop-unroll-full),instcombine<no-verify-fixpoint>,simplifycfg)";

static LogicalResult cleanUp(Module &module, TargetMachine &machine) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  ModulePassManager passes;
  if (Error error = builder.parsePassPipeline(passes, kCleanUp)) {
    WithColor::error() << toString(std::move(error)) << "\n";
    return failure();
  }
  passes.run(module, modules);
  return success();
}

std::string reprise::target::resolveCPU(StringRef cpu) {
  return cpu == "native" ? sys::getHostCPUName().str() : cpu.str();
}

bool reprise::target::hasWideRegisters(StringRef cpu) {
  InitializeNativeTarget();
  Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return false;
  std::unique_ptr<MCSubtargetInfo> known(
      target->createMCSubtargetInfo(triple, /*CPU=*/"", /*Features=*/""));
  if (!known->isCPUStringValid(cpu))
    return false;
  std::unique_ptr<MCSubtargetInfo> processor(
      target->createMCSubtargetInfo(triple, cpu, /*Features=*/""));
  return processor->checkFeatures("+avx512f");
}

LogicalResult reprise::target::emitObject(Module &module, StringRef cpu,
                                          raw_pwrite_stream &os) {
  std::unique_ptr<TargetMachine> machine = createMachine(cpu);
  if (!machine)
    return failure();
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());

  if (failed(cleanUp(module, *machine)))
    return failure();
  legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, os, nullptr,
                                   CodeGenFileType::ObjectFile)) {
    WithColor::error() << "the target makes no object files\n";
    return failure();
  }
  emission.run(module);
  return success();
}
