//===- SharedObject.cpp - Lowered kernels as machine code -------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "lld/Common/Driver.h"
#include "reprise/Codegen/Common/RunPasses.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

LLD_HAS_DRIVER(elf)

using namespace llvm;
using namespace reprise;

/// Steps of tests are short: better code takes longer to make than it saves.
static constexpr StringRef kPasses =
    "function(sroa,early-cse,instcombine,simplifycfg)";
static constexpr CodeGenOptLevel kLevel = CodeGenOptLevel::None;

static Error makeError(const Twine &text) {
  return createStringError(inconvertibleErrorCode(), text);
}

static Expected<std::unique_ptr<TargetMachine>>
createTargetMachine(const Triple &triple) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return makeError(error);
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, "x86-64-v3", "", TargetOptions(),
                                  Reloc::PIC_, std::nullopt, kLevel));
}

static Error emitObject(Module &module, TargetMachine &machine,
                        StringRef path) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (code)
    return makeError(path + ": " + code.message());
  legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr,
                                  CodeGenFileType::ObjectFile))
    return makeError("the host's target writes no objects");
  passes.run(module);
  return Error::success();
}

Error simulator::writeSharedObject(Module &module, StringRef path) {
  if (Error error = lowerForHost(module))
    return error;
  auto machine = createTargetMachine(module.getTargetTriple());
  if (!machine)
    return machine.takeError();
  module.setDataLayout((*machine)->createDataLayout());
  if (Error error = codegen::runPasses(module, **machine, kPasses))
    return error;
  std::string object = (path + ".o").str(), target = path.str();
  if (Error error = emitObject(module, **machine, object))
    return error;
  std::string folder = sys::path::parent_path(REPRISE_SIMULATOR_LIBRARY).str();
  const char *arguments[] = {"ld.lld",       "-shared",
                             "-o",           target.c_str(),
                             object.c_str(), REPRISE_SIMULATOR_LIBRARY,
                             "-rpath",       folder.c_str()};
  lld::Result result =
      lld::lldMain(arguments, outs(), errs(), {{lld::Gnu, &lld::elf::link}});
  sys::fs::remove(object);
  if (result.retCode != 0)
    return makeError("ld.lld could not link '" + target + "'");
  return Error::success();
}
