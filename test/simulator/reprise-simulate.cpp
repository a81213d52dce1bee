//===- reprise-simulate.cpp - Kernels for the simulator ---------*- C++ -*-===//
//
// Part of Reprise, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// reprise-simulate DEVICE -o KERNELS.so: a module of the phase `nvvm`, or the
// LLVM IR that PTX is made of, as a shared object that libRepriseSimulator.so
// runs.
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "reprise/Codegen/CUDA/Device.h"
#include "reprise/Pipelines/Registration.h"
#include "test/common/Words.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace reprise;

static cl::OptionCategory category("reprise-simulate options");
static cl::opt<std::string> input(cl::Positional, cl::desc("<device module>"),
                                  cl::init("-"), cl::cat(category));
static cl::opt<std::string> output("o", cl::desc("The shared object"),
                                   cl::Required, cl::cat(category));
static cl::opt<std::string>
    chip("chip", cl::desc("The chip that LLVM IR is made for (sm_80)"),
         cl::init("sm_80"), cl::cat(category));
static cl::opt<int>
    stage("stage", cl::desc("The stage of a pipeline whose kernels they are"),
          cl::init(-1), cl::cat(category));
static cl::opt<bool> emitLLVM("S", cl::desc("Write the lowered module as text"),
                              cl::cat(category));

/// The module of the stage that is asked for, or the whole.
static mlir::ModuleOp findStage(mlir::ModuleOp whole) {
  if (stage < 0)
    return whole;
  auto found =
      whole.lookupSymbol<mlir::ModuleOp>("stage" + std::to_string(stage));
  if (!found)
    WithColor::error(errs(), "reprise-simulate")
        << "there is no stage " << stage << "\n";
  return found;
}

/// The LLVM IR in `input`, or that of its `@device` if its name ends in .mlir;
/// null after an error.
static std::unique_ptr<Module> readModule(LLVMContext &context) {
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module;
  if (!StringRef(input).ends_with(".mlir")) {
    module = parseIRFile(input, diagnostic, context);
    if (!module)
      diagnostic.print("reprise-simulate", errs());
    return module;
  }
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext mlirContext(registry);
  auto source = mlir::parseSourceFile<mlir::ModuleOp>(input, &mlirContext);
  if (!source)
    return nullptr;
  mlir::ModuleOp own = findStage(*source);
  if (!own)
    return nullptr;
  mlir::FailureOr<std::string> text = cuda::translateDeviceToLLVMIR(own, chip);
  if (failed(text))
    return nullptr;
  return parseIR(MemoryBufferRef(*text, input), diagnostic, context);
}

int main(int argc, char **argv) {
  InitLLVM init(argc, argv);
  reprise::test::readWords(argc, argv, category,
                           "Kernels for the device simulator\n");
  auto fail = [](const Twine &text) {
    WithColor::error(errs(), "reprise-simulate") << text << "\n";
    return 1;
  };
  LLVMContext context;
  std::unique_ptr<Module> module = readModule(context);
  if (!module)
    return 1;
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
