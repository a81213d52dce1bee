//===- reprise-simulate.cpp - Kernels for the simulator ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// reprise-simulate DEVICE.ll -o KERNELS.so: the LLVM IR of a device module as a
// shared object that libRepriseSimulator.so runs.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace reprise;

static cl::OptionCategory category("reprise-simulate options");
static cl::opt<std::string> input(cl::Positional, cl::desc("<device module>"),
                                  cl::init("-"), cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("The shared object"),
                                   cl::Required, cl::cat(category));
static cl::opt<bool> emitLLVM("S", cl::desc("Write the lowered module as text"),
                              cl::cat(category));

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "Kernels for the device simulator\n");
  auto fail = [](const Twine &text) {
    WithColor::error(errs(), "reprise-simulate") << text << "\n";
    return 1;
  };
  LLVMContext context;
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseIRFile(input, diagnostic, context);
  if (!module) {
    diagnostic.print("reprise-simulate", errs());
    return 1;
  }
  if (!emitLLVM) {
    if (Error error = simulator::writeSharedObject(*module, output))
      return fail(toString(std::move(error)));
    return 0;
  }
  if (Error error = simulator::lowerForHost(*module))
    return fail(toString(std::move(error)));
  std::error_code code;
  raw_fd_ostream stream(output, code);
  if (code)
    return fail(output + ": " + code.message());
  stream << *module;
  return 0;
}
