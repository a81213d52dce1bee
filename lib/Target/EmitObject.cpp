//===- EmitObject.cpp - Machine code ----------------------------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "reprise/Codegen/Common/RunPasses.h"
#include "reprise/Target/Executable.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

static const Triple kTriple("x86_64-unknown-linux-gnu");

static const llvm::Target *findTarget() {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  std::string error;
  const llvm::Target *target = TargetRegistry::lookupTarget(kTriple, error);
  if (!target)
    WithColor::error() << error << "\n";
  return target;
}

/// What LLVM knows of the processor `cpu`; null if there is none of that name.
static std::unique_ptr<MCSubtargetInfo>
findProcessor(const llvm::Target &target, StringRef cpu) {
  std::unique_ptr<MCSubtargetInfo> known(
      target.createMCSubtargetInfo(kTriple, /*CPU=*/"", /*Features=*/""));
  if (!known->isCPUStringValid(cpu))
    return nullptr;
  return std::unique_ptr<MCSubtargetInfo>(
      target.createMCSubtargetInfo(kTriple, cpu, /*Features=*/""));
}

std::string reprise::target::checkProcessor(StringRef cpu) {
  const llvm::Target *target = findTarget();
  if (!target)
    return "needs an LLVM that makes code for x86-64";
  std::unique_ptr<MCSubtargetInfo> processor = findProcessor(*target, cpu);
  if (!processor)
    return "needs a processor that LLVM knows, such as x86-64-v3, but got '" +
           cpu.str() + "'";
  if (!processor->checkFeatures("+64bit"))
    return "needs a 64-bit x86 processor, but got '" + cpu.str() + "'";
  return "";
}

bool reprise::target::hasWideRegisters(StringRef cpu) {
  const llvm::Target *target = findTarget();
  if (!target)
    return false;
  std::unique_ptr<MCSubtargetInfo> processor = findProcessor(*target, cpu);
  return processor && processor->checkFeatures(
                          "+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl");
}

std::string reprise::target::resolveCPU(StringRef cpu) {
  return cpu == "native" ? sys::getHostCPUName().str() : cpu.str();
}

/// How code for the processor `cpu` is made; null after a message.
static std::unique_ptr<TargetMachine> createMachine(StringRef cpu) {
  const llvm::Target *target = findTarget();
  if (!target)
    return nullptr;
  TargetOptions options;
  options.FunctionSections = options.DataSections = true;
  // A product and a sum are contracted only where a kernel says so.
  options.AllowFPOpFusion = FPOpFusion::Strict;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      kTriple, cpu, /*Features=*/"", options, Reloc::PIC_));
}

FailureOr<reprise::target::ObjectFile>
reprise::target::emitObject(Module &module, StringRef cpu) {
  std::unique_ptr<TargetMachine> machine = createMachine(cpu);
  if (!machine)
    return failure();
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());

  if (Error error = reprise::codegen::runPasses(
          module, *machine, reprise::codegen::kKernelPasses)) {
    WithColor::error() << toString(std::move(error)) << "\n";
    return failure();
  }
  ObjectFile object;
  raw_svector_ostream os(object);
  legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, os, nullptr,
                                   CodeGenFileType::ObjectFile)) {
    WithColor::error() << "the target makes no object files\n";
    return failure();
  }
  emission.run(module);
  return object;
}
